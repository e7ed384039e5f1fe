"""UnregisterBroker (64): removes a broker that is gone for good from the metadata (KIP-631)."""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api
from broker.dispatch.rules import whole
from broker.request.authorisation import ALTER_CLUSTER
from protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

API = Api(UnregisterBrokerRequest, UnregisterBrokerResponse, answered_by=CONTROLLER, authorize=whole(ALTER_CLUSTER))
