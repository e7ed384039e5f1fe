"""UnregisterBroker (64): removes a broker that is gone for good from the metadata (KIP-631)."""

from __future__ import annotations

from broker.exchange.authorisation import ALTER_CLUSTER
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from broker.requests.rules import whole
from protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

API = Api(UnregisterBrokerRequest, UnregisterBrokerResponse, by_controller, authorize=whole(ALTER_CLUSTER))
