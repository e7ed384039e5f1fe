"""Tests UpdateFeatures: all levels or none, and no level below what the metadata needs."""

from __future__ import annotations

import pytest

from coordinator.cluster.brokers.update_features import UpgradeType, update_features
from coordinator.cluster.image import Image
from coordinator.cluster.record import MetadataRecord
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from protocol.metadata_records.log import NoOpRecord
from protocol.metadata_records.settings import FeatureLevelRecord
from protocol.records.control import KRaftVersionRecord
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import broker_config


def update(
    image: Image,
    *updates: tuple[str, int, UpgradeType],
    validate_only: bool = False,
    quorum_problem: KafkaError | None = None,
) -> tuple[list[MetadataRecord], int, str | None]:
    keys = [FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind) for name, level, kind in updates]
    request = UpdateFeaturesRequest(feature_updates=keys, validate_only=validate_only)
    decided = given.decide(
        update_features, image, request, min_insync_replicas=1, kraft_problem=lambda _: quorum_problem
    )
    return list(decided.records), decided.answer.error_code, decided.answer.error_message


def level(name: str, at: int) -> FeatureLevelRecord:
    return FeatureLevelRecord(name=name, feature_level=at)


def older() -> Image:
    """Returns a cluster with the features of 4.0."""
    image = given.image()
    image.features |= {"metadata.version": 25, "group.version": 0, "eligible.leader.replicas.version": 0}
    return image


UP, SAFE, UNSAFE = UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE


def test_a_feature_goes_up() -> None:
    assert update(older(), ("group.version", 1, UP)) == ([level("group.version", 1)], ErrorCode.NONE, None)


def test_kraft_version_is_a_record_of_the_quorum_before_one_without_effect() -> None:
    upgrade = [KRaftVersionRecord(version=0, k_raft_version=1), NoOpRecord()]
    assert update(given.image(), ("kraft.version", 1, UP)) == (upgrade, ErrorCode.NONE, None)
    assert update(given.image(), ("kraft.version", 1, UP), validate_only=True) == ([], ErrorCode.NONE, None)


def test_kraft_version_is_not_written_again() -> None:
    image = given.image()
    image.kraft_version = 1
    assert update(image, ("kraft.version", 1, UP)) == ([], ErrorCode.NONE, None)


def test_kraft_version_and_another_feature_change_together_or_not_at_all() -> None:
    updates = ("group.version", 1, UP), ("kraft.version", 1, UP)
    records, code, _ = update(older(), *updates)
    assert records == [level("group.version", 1), KRaftVersionRecord(version=0, k_raft_version=1), NoOpRecord()]
    assert code == ErrorCode.NONE
    problem = KafkaError(ErrorCode.INVALID_UPDATE_VERSION, "not all of the voters support it")
    for validate_only in (True, False):
        rejected = update(older(), *updates, validate_only=validate_only, quorum_problem=problem)
        assert rejected == (
            [],
            ErrorCode.INVALID_UPDATE_VERSION,
            "The update failed for all features since the following feature had an error: not all of the voters "
            "support it",
        )


def test_a_validation_leaves_no_records() -> None:
    assert update(older(), ("group.version", 1, UP), validate_only=True) == ([], ErrorCode.NONE, None)


def test_eligible_leader_replicas_bring_one_minimum_for_the_whole_cluster() -> None:
    image = older()
    image.apply(broker_config("1", "min.insync.replicas", "2"))
    records, _, _ = update(image, ("eligible.leader.replicas.version", 1, UP))
    assert records == [
        broker_config("", "min.insync.replicas", "1"),
        broker_config("1", "min.insync.replicas", None),
        level("eligible.leader.replicas.version", 1),
    ]


@pytest.mark.parametrize(("name", "at", "kind", "message"), [
    ("group.version", 2, UP, "Local controller 1 only supports versions 0-1"),
    ("no.such.version", 1, UP, "Local controller 1 does not support this feature."),
    ("no.such.version", 0, UP, "Feature no.such.version not found."),
    ("no.such.version", 0, SAFE, "Feature no.such.version not found."),
    ("group.version", -1, UP, "A feature version cannot be less than 0."),
    ("group.version", 1, UpgradeType.UNKNOWN, "The controller does not support the given upgrade type."),
    ("group.version", 1, SAFE, "Can't downgrade to a newer version."),
    ("transaction.version", 1, UP, "Can't downgrade the version of this feature without setting the upgrade type to "
     "either safe or unsafe downgrade."),
])  # fmt: skip
def test_a_level_that_cannot_be_is_told_why(name: str, at: int, kind: UpgradeType, message: str) -> None:
    records, code, message_told = update(older(), (name, at, kind))
    assert (records, code) == ([], ErrorCode.INVALID_UPDATE_VERSION)
    assert message_told is not None
    assert message_told.endswith(f"Invalid update version {at} for feature {name}. {message}")


def test_one_bad_update_keeps_the_others() -> None:
    records, code, _ = update(older(), ("group.version", 1, UP), ("share.version", 9, UP))
    assert (records, code) == ([], ErrorCode.INVALID_UPDATE_VERSION)


def test_a_metadata_version_goes_down_only_where_no_record_would_be_lost() -> None:
    assert update(older(), ("metadata.version", 24, SAFE)) == ([level("metadata.version", 24)], ErrorCode.NONE, None)
    for kind, why in ((SAFE, "it might delete metadata information"), (UNSAFE, "is not supported in this version")):
        records, code, message_told = update(older(), ("metadata.version", 22, kind))
        assert (records, code) == ([], ErrorCode.INVALID_UPDATE_VERSION)
        assert why in (message_told or "")
