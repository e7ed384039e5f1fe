"""Compares the features of a new cluster with kafka-storage of Apache Kafka 4.4.0."""

from __future__ import annotations

import pytest

from coordinator.cluster.brokers.features import BOOTSTRAP_FEATURES, LATEST_METADATA_VERSION
from coordinator.cluster.brokers.releases import LEVELS, level_of_release, new_cluster_features, release_of_level
from protocol.config import ConfigError


def test_the_newest_release_is_that_of_a_cluster_of_one() -> None:
    assert list(new_cluster_features(None, {}, dynamic_quorum=True).items()) == list(BOOTSTRAP_FEATURES.items())
    assert max(LEVELS.values()) == LATEST_METADATA_VERSION


@pytest.mark.parametrize(("text", "level"), [
    ("3.3-IV3", 7), ("3.9", 21), ("4.0", 25), ("4.0.1", 25), ("4.0-IV1", 23), ("4.3", 30), ("4.4-IV0", 31), ("4.4", 33),
])  # fmt: skip
def test_a_release_has_a_level(text: str, level: int) -> None:
    assert level_of_release(text) == level


@pytest.mark.parametrize("text", ["9.9", "3.2", "4.3-IV1", "4", "", "4.0-IV", "IV0"])
def test_a_release_that_is_none_is_refused_with_all_that_are(text: str) -> None:
    with pytest.raises(ConfigError, match=f"Unknown metadata.version '{text}'. Supported .* are: 3.3-IV3, .*4.4-IV2"):
        level_of_release(text)


def test_a_level_has_a_name() -> None:
    assert {level: release_of_level(level) for level in (7, 19, 33)} == {7: "3.3-IV3", 19: "3.7-IV4", 33: "4.4-IV2"}
    for level in (6, 34, -1):
        with pytest.raises(ConfigError, match=f"feature level {level}"):
            release_of_level(level)


NEW_IN_4_2 = {
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}


@pytest.mark.parametrize(("release", "features"), [
    ("3.9", {}),
    ("4.0-IV0", {"group.version": 1}),
    ("4.0-IV3", {"group.version": 1, "transaction.version": 2}),
    ("4.1", {"eligible.leader.replicas.version": 1, "group.version": 1, "transaction.version": 2}),
    ("4.3", {**NEW_IN_4_2, "share.version": 1}),
    ("4.4-IV0", {**NEW_IN_4_2, "share.version": 2}),
])  # fmt: skip
def test_an_older_release_has_the_features_of_its_time(release: str, features: dict[str, int]) -> None:
    levels = new_cluster_features(release, {}, dynamic_quorum=False)
    assert levels.pop("metadata.version") == level_of_release(release)
    assert list(levels.items()) == list(features.items())


def test_a_feature_can_be_given_and_taken() -> None:
    levels = new_cluster_features("4.0", {"transaction.version": 0, "share.version": 1}, dynamic_quorum=False)
    assert levels == {"metadata.version": 25, "group.version": 1, "share.version": 1}
    assert new_cluster_features(None, {"metadata.version": 25}, dynamic_quorum=False)["metadata.version"] == 25


@pytest.mark.parametrize(("release", "given", "problem"), [
    (None, {"foo.version": 1}, "Unsupported feature: foo.version. Supported features are: eligible"),
    (None, {"group.version": 7}, "No feature:group.version with feature level 7"),
    (None, {"group.version": -1}, "No feature:group.version with feature level -1"),
    (None, {"metadata.version": 3}, "No feature:metadata.version with feature level 3"),
    ("4.0", {"metadata.version": 25}, "Use --release-version instead"),
    ("3.3", {"eligible.leader.replicas.version": 1}, "depends on metadata.version level 23"),
    (None, {"kraft.version": 1}, "Cannot set kraft.version to 1 unless KIP-853"),
])  # fmt: skip
def test_features_that_make_no_cluster_are_refused(release: str | None, given: dict[str, int], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        new_cluster_features(release, given, dynamic_quorum=False)


def test_a_dynamic_quorum_has_kraft_version_1_and_no_other() -> None:
    assert "kraft.version" not in new_cluster_features(None, {"kraft.version": 1}, dynamic_quorum=True)
    with pytest.raises(ConfigError, match="to 0 if KIP-853"):
        new_cluster_features(None, {"kraft.version": 0}, dynamic_quorum=True)
