"""UnregisterBroker (64): removes a broker that is gone for good from the metadata (KIP-631)."""

from __future__ import annotations

from broker.exchange.authorisation import ALTER_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.call import HostCall
from protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


async def unregister_broker(call: HostCall[UnregisterBrokerRequest]) -> UnregisterBrokerResponse:
    await call.host.controller.unregister_broker(call.request)
    return UnregisterBrokerResponse(error_code=0, error_message=None)


API = Api(UnregisterBrokerRequest, UnregisterBrokerResponse, unregister_broker, of_cluster(ALTER_CLUSTER))
