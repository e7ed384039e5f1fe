"""Compares every number and flag of the requests about topics and records, at its extremes, with Apache Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from broker.handlers import APIS
from protocol.api_key import ApiKey
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.extremes import TOPIC, Extreme, extremes
from tests.interop.conformance.compare import Both
from tests.interop.conformance.meant import AT_EXTREMES
from tests.interop.conformance.peers import Peer
from tests.interop.conformance.records import batch

NAMES = [
    "metadata",
    "fetch",
    "list_offsets",
    "offset_for_leader_epoch",
    "delete_records",
    "create_topics",
    "create_partitions",
    "elect_leaders",
    "alter_partition_reassignments",
    "list_partition_reassignments",
    "alter_replica_log_dirs",
    "describe_log_dirs",
    "describe_producers",
    "describe_configs",
    "describe_topic_partitions",
    "describe_quorum",
    "describe_cluster",
    "update_features",
    "unregister_broker",
    "list_config_resources",
    "list_transactions",
    "describe_acls",
    "create_acls",
    "delete_acls",
    "produce",
]
PRODUCE_VERSION = 11
TIMEOUT_MS = 5000
LAST_WITH_NAMES = 12
"""The last version of Produce that names topics."""


def prepared(peer: Peer) -> bytes:
    """Returns the id of a topic of two partitions with records."""
    for topic_id, name in peer.names.items():
        if name == TOPIC:
            return topic_id
    topic_id = peer.create(TOPIC, 2)
    for index in (0, 1):
        data = [PartitionProduceData(index=index, records=batch(3))]
        topic = TopicProduceData(name=TOPIC, partition_data=data)
        peer.quietly(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[topic]), PRODUCE_VERSION)
    return topic_id


def is_compared(name: str, version: int, one: Extreme) -> bool:
    """True for a request that gets an answer, and leaves both brokers with the same records."""
    return name != "produce" or (version <= LAST_WITH_NAMES and one.path[-1] != "acks")


def patient(request: Any) -> Any:
    """Returns the request with a longer timeout for a busy machine, unless its timeout is zero or negative."""
    if getattr(request, "timeout_ms", 0) > 0:
        request.timeout_ms = TIMEOUT_MS
    return request


@pytest.mark.parametrize("name", NAMES)
def test_any_number_may_be_at_its_extremes(both: Both, name: str) -> None:
    api = APIS.find(ApiKey[name.upper()])
    assert api is not None
    request = api.request
    versions = [*both.pair.versions(request)]

    def script(peer: Peer) -> None:
        topic_id = prepared(peer)
        for version in sorted({versions[0], versions[-1]}):
            for one in extremes(request, version):
                if is_compared(name, version, one):
                    peer.try_ask(patient(one.build(topic_id)), version)

    both(script, allowed=AT_EXTREMES.get(name, ()))
