"""UnregisterController (94): removes the registration of a controller that is gone for good (KIP-1312)."""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api
from broker.dispatch.rules import whole
from broker.request.authorisation import ALTER_CLUSTER
from protocol.messages.unregister_controller import UnregisterControllerRequest, UnregisterControllerResponse

API = Api(
    UnregisterControllerRequest, UnregisterControllerResponse, answered_by=CONTROLLER, authorize=whole(ALTER_CLUSTER)
)
