"""Decides on ControllerRegistration: records another controller's listeners and supported features (KIP-919).

Source: Kafka's ClusterControlManager.registerController.
"""

from __future__ import annotations

from coordinator.cluster.brokers.activation import CONTROLLER_REGISTRATION_VERSION
from coordinator.cluster.brokers.bounds import check_features, check_listeners, check_node
from coordinator.cluster.brokers.info import ControllerRegistration, Endpoint, FeatureRange
from coordinator.cluster.image import Image
from coordinator.cluster.record import ClusterResult
from coordinator.engine.result import Ticket, answered
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse


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
