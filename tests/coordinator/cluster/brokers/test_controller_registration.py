"""Tests ControllerRegistration, with which another controller registers, and UnregisterController."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.cluster.brokers.activation import CONTROLLER_REGISTRATION_VERSION, CONTROLLER_UNREGISTRATION_VERSION
from coordinator.cluster.brokers.bounds import MAX_NODES
from coordinator.cluster.brokers.controller_registration import register_controller, unregister_controller
from coordinator.cluster.brokers.info import FeatureRange
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.controller_registration import ControllerRegistrationRequest, Feature, Listener
from protocol.messages.unregister_controller import UnregisterControllerRequest
from protocol.metadata_records.nodes import UnregisterControllerRecord
from protocol.metadata_records.settings import FeatureLevelRecord
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import NODE

OTHER = 9
NEW = b"other-inc-------"


def request(**fields: Any) -> ControllerRegistrationRequest:
    """Returns the registration of a second controller; `fields` replaces fields of it."""
    request = ControllerRegistrationRequest(
        controller_id=OTHER,
        incarnation_id=NEW,
        zk_migration_ready=False,
        listeners=[Listener(name="CONTROLLER", host="c9.example", port=9093, security_protocol=1)],
        features=[Feature(name="kraft.version", min_supported_version=0, max_supported_version=1)],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def test_a_controller_is_registered_with_its_listeners_and_features() -> None:
    image = given.image()
    decided = given.decide(register_controller, image, request())
    assert (decided.answer.error_code, decided.answer.error_message) == (0, None)
    given.apply(image, decided.records)
    registered = image.controllers[OTHER]
    assert registered.incarnation_id == NEW
    assert [tuple(endpoint) for endpoint in registered.endpoints] == [("CONTROLLER", "c9.example", 9093, 1)]
    assert registered.features == {"kraft.version": FeatureRange(0, 1)}


def test_a_controller_that_starts_again_replaces_its_registration() -> None:
    image = given.image()
    for incarnation_id in (NEW, b"other-inc-again-"):
        given.apply(image, given.decide(register_controller, image, request(incarnation_id=incarnation_id)).records)
    assert sorted(image.controllers) == [NODE, OTHER]
    assert image.controllers[OTHER].incarnation_id == b"other-inc-again-"


def test_a_metadata_version_without_the_record_has_no_registrations() -> None:
    image = given.image(FeatureLevelRecord(name="metadata.version", feature_level=CONTROLLER_REGISTRATION_VERSION - 1))
    with pytest.raises(KafkaError) as caught:
        given.decide(register_controller, image, request())
    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_no_more_controllers_register_than_a_cluster_has() -> None:
    image = given.image()
    image.controllers |= dict.fromkeys(range(100, 100 + MAX_NODES), image.controllers[NODE])
    with pytest.raises(KafkaError, match="nodes are registered"):
        given.decide(register_controller, image, request())
    assert given.decide(register_controller, image, request(controller_id=NODE)).records


def metadata_version(level: int) -> FeatureLevelRecord:
    return FeatureLevelRecord(name="metadata.version", feature_level=level)


def test_the_registration_of_a_controller_is_removed() -> None:
    image = given.image(metadata_version(CONTROLLER_UNREGISTRATION_VERSION))
    given.apply(image, given.decide(register_controller, image, request()).records)
    decided = given.decide(unregister_controller, image, UnregisterControllerRequest(controller_id=OTHER), NODE)
    assert list(decided.records) == [UnregisterControllerRecord(controller_id=OTHER)]
    assert (decided.answer.error_code, decided.answer.error_message) == (0, None)
    given.apply(image, decided.records)
    assert sorted(image.controllers) == [NODE]


@pytest.mark.parametrize(("level", "controller_id", "code", "message"), [
    (33, 77, ErrorCode.CONTROLLER_ID_NOT_REGISTERED, "Controller ID 77 is not currently registered."),
    (33, -1, ErrorCode.CONTROLLER_ID_NOT_REGISTERED, "Controller ID -1 is not currently registered."),
    (33, NODE, ErrorCode.INVALID_REQUEST, "Controller cannot unregister itself while it is active."),
    (32, NODE, ErrorCode.INVALID_REQUEST, "Controller cannot unregister itself while it is active."),
    (32, OTHER, ErrorCode.UNSUPPORTED_VERSION, "too old to support controller unregistration."),
])  # fmt: skip
def test_the_active_controller_and_unknown_ones_are_not_unregistered(
    level: int, controller_id: int, code: ErrorCode, message: str
) -> None:
    image = given.image(metadata_version(level))
    given.apply(image, given.decide(register_controller, image, request()).records)
    with pytest.raises(KafkaError, match=message) as caught:
        given.decide(unregister_controller, image, UnregisterControllerRequest(controller_id=controller_id), NODE)
    assert caught.value.code is code
