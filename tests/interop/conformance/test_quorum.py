"""Compares the quorum, features and brokers of a single-node cluster with Apache Kafka."""

from __future__ import annotations

import pytest

from protocol.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from protocol.messages.unregister_broker import UnregisterBrokerRequest
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.interop.conformance.compare import Both
from tests.interop.conformance.peers import Peer

METADATA = "__cluster_metadata"
FIRST_TYPED_VERSION = 1
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


@pytest.mark.parametrize(
    "requested",
    [[(METADATA, [0])], [(METADATA, [0, 1])], [(METADATA, [])], [("nowhere", [0])], [], [(METADATA, [0]), ("x", [0])]],
    ids=str,
)
def test_the_quorum(both: Both, requested: list[tuple[str, list[int]]]) -> None:
    def script(peer: Peer, version: int) -> None:
        topics = [
            TopicData(topic_name=name, partitions=[PartitionData(partition_index=index) for index in indexes])
            for name, indexes in requested
        ]
        peer.try_ask(DescribeQuorumRequest(topics=topics), version)

    both.each_version(DescribeQuorumRequest, script)


@pytest.mark.parametrize("broker_id", [7, -1])
def test_an_unknown_broker_is_not_forgotten(both: Both, broker_id: int) -> None:
    def script(peer: Peer) -> None:
        peer.try_ask(UnregisterBrokerRequest(broker_id=broker_id), 0)

    both(script)


FEATURES: dict[str, list[tuple[str, int, int]]] = {
    "nothing": [],
    "an unknown feature": [("no.such.feature", 1, UPGRADE)],
    "no name": [("", 1, UPGRADE)],
    "a level too high": [("metadata.version", 999, UPGRADE)],
    "another feature's level too high": [("group.version", 99, UPGRADE)],
    "a negative level": [("group.version", -1, UPGRADE)],
    "the level that it has": [("group.version", 1, UPGRADE)],
    "a downgrade as an upgrade": [("group.version", 0, UPGRADE)],
    "an unknown kind": [("group.version", 1, 9)],
    "metadata to nothing": [("metadata.version", 0, UNSAFE_DOWNGRADE)],
    "metadata down as an upgrade": [("metadata.version", 7, UPGRADE)],
    "twice": [("group.version", 1, UPGRADE), ("group.version", 1, UPGRADE)],
    "some": [("group.version", 1, UPGRADE), ("no.such.feature", 1, UPGRADE)],
}


@pytest.mark.parametrize("case", FEATURES)
def test_features(both: Both, case: str) -> None:
    def script(peer: Peer, version: int) -> None:
        updates = [
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind, allow_downgrade=kind != UPGRADE)
            for name, level, kind in FEATURES[case]
        ]
        for validate_only in (True, False) if version >= FIRST_TYPED_VERSION else (False,):
            request = UpdateFeaturesRequest(timeout_ms=5000, feature_updates=updates, validate_only=validate_only)
            peer.try_ask(request, version)

    both.each_version(UpdateFeaturesRequest, script)
