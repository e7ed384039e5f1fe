"""ControllerRegistration (70): a controller registers its endpoints and the features that it supports (KIP-919)."""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from protocol.messages.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse

API = Api(
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    answered_by=CONTROLLER,
    authorize=whole(CLUSTER_ACTION_CLUSTER),
)
