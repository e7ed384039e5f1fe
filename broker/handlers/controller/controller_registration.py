"""ControllerRegistration (70): a controller says where it listens and with which features it can run (KIP-919)."""

from __future__ import annotations

from broker.exchange.authorisation import CLUSTER_ACTION_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.call import HostCall
from protocol.messages.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse


async def controller_registration(
    call: HostCall[ControllerRegistrationRequest],
) -> ControllerRegistrationResponse:
    return await call.host.controller.register_controller(call.request)


API = Api(
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    controller_registration,
    of_cluster(CLUSTER_ACTION_CLUSTER),
)
