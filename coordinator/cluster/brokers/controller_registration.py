"""Decides on ControllerRegistration, which records another controller's listeners and supported features (KIP-919),
and on UnregisterController (KIP-1312).

Source: Kafka's ClusterControlManager and QuorumController.unregisterController.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.cluster.brokers.activation import CONTROLLER_REGISTRATION_VERSION, CONTROLLER_UNREGISTRATION_VERSION
from coordinator.cluster.brokers.bounds import check_features, check_listeners, check_node
from coordinator.cluster.brokers.info import ControllerRegistration, Endpoint, FeatureRange
from coordinator.cluster.image import Image
from coordinator.cluster.record import ClusterResult
from coordinator.engine.result import Ticket, answered
from protocol.errors import ErrorCode, KafkaError
from protocol.lazy import lazy
from protocol.messages.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse
from protocol.metadata_records.nodes import UnregisterControllerRecord

if TYPE_CHECKING:
    from protocol.messages import unregister_controller as messages
    from protocol.messages.unregister_controller import UnregisterControllerRequest, UnregisterControllerResponse
else:
    messages = lazy("protocol.messages.unregister_controller")


def register_controller(
    image: Image, request: ControllerRegistrationRequest, ticket: Ticket[ControllerRegistrationResponse]
) -> ClusterResult:
    """Returns the decision that registers the controller. Raises KafkaError(UNSUPPORTED_VERSION,
    INVALID_REGISTRATION).
    """
    if image.metadata_version < CONTROLLER_REGISTRATION_VERSION:
        message = "The current MetadataVersion is too old to support controller registrations."
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
    check_node(request.controller_id, image.controllers)
    check_listeners(request.listeners)
    check_features(request.features)
    controller = ControllerRegistration(
        request.controller_id,
        request.incarnation_id,
        tuple(
            Endpoint(listener.name, listener.host, listener.port, listener.security_protocol)
            for listener in request.listeners
        ),
        {
            feature.name: FeatureRange(feature.min_supported_version, feature.max_supported_version)
            for feature in request.features
        },
    )
    return answered(ticket, ControllerRegistrationResponse(error_code=0, error_message=None), [controller.to_record()])


def unregister_controller(
    image: Image, request: UnregisterControllerRequest, ticket: Ticket[UnregisterControllerResponse], own_id: int
) -> ClusterResult:
    """Returns the decision that removes the registration of a controller; `own_id` is the active controller's.

    Raises KafkaError(INVALID_REQUEST) for the active controller, UNSUPPORTED_VERSION, CONTROLLER_ID_NOT_REGISTERED.
    """
    controller_id = request.controller_id
    if controller_id == own_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Controller cannot unregister itself while it is active.")
    if image.metadata_version < CONTROLLER_UNREGISTRATION_VERSION:
        message = "The current MetadataVersion is too old to support controller unregistration."
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
    if controller_id not in image.controllers:
        message = f"Controller ID {controller_id} is not currently registered."
        raise KafkaError(ErrorCode.CONTROLLER_ID_NOT_REGISTERED, message)
    response = messages.UnregisterControllerResponse(error_code=ErrorCode.NONE, error_message=None)
    return answered(ticket, response, [UnregisterControllerRecord(controller_id=controller_id)])
