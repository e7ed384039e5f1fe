"""ControllerRegistration (70): a controller says where it listens and with which features it can run (KIP-919)."""

from __future__ import annotations

from broker.exchange.authorisation import CLUSTER_ACTION_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from protocol.messages.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse

API = Api(
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    by_controller,
    of_cluster(CLUSTER_ACTION_CLUSTER),
)
