"""ControllerRegistration (70): a controller registers its endpoints and the features that it supports (KIP-919)."""

from __future__ import annotations

from broker.exchange.authorisation import CLUSTER_ACTION_CLUSTER
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from broker.requests.rules import whole
from protocol.messages.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse

API = Api(
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    by_controller,
    authorize=whole(CLUSTER_ACTION_CLUSTER),
)
