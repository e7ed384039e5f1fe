"""Compares requests of groups, transactions and share state that name topics and partitions twice, or name none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from coordinator.transaction.transaction import Producer
from protocol.messages import alter_share_group_offsets as altering
from protocol.messages import delete_share_group_offsets as removing
from protocol.messages import delete_share_group_state as forgetting
from protocol.messages import describe_share_group_offsets as telling
from protocol.messages import initialize_share_group_state as beginning
from protocol.messages import offset_commit as committing
from protocol.messages import offset_delete as deleting
from protocol.messages import offset_fetch as fetching
from protocol.messages import read_share_group_state as reading
from protocol.messages import read_share_group_state_summary as summing
from protocol.messages import txn_offset_commit as pending
from protocol.messages import write_share_group_state as writing
from protocol.messages import write_txn_markers as marking
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.types import NO_UUID
from tests.interop.conformance.compare import Both
from tests.interop.conformance.meant import NO_PARTITION_OF_A_SHARE_GROUP, NOTHING_TO_TELL
from tests.interop.conformance.peers import Peer
from tests.interop.conformance.sharing import OWN_WORDS
from tests.interop.conformance.test_share_state import state_of
from tests.interop.conformance.transacting import GROUP, TRANSACTION, Transacting

LISTS = {
    "empty": [],
    "once": [0],
    "doubled": [0, 0],
    "both": [1, 0, 1],
    "absent": [9, 0, 9],
    "below": [-1, 0],
}
UNKNOWN_MEMBER_ID = 25
COMMIT_VERSION = 9
UNANSWERED = {("DescribeShareGroupOffsets", "absent")}
"""Apache Kafka never answers for a missing partition of an existing topic."""

NO_ANSWER = {"doubled", "both"}
"""Apache Kafka never answers a marker that names a partition twice."""

HERE, ABSENT = "here", "absent"
TOPICS = [(), (HERE,), (HERE, HERE), (ABSENT, HERE, ABSENT), ("", HERE)]

Named = Sequence[tuple[str, list[int]]]
Build = Callable[[str, Named, dict[str, bytes]], object]


def topics_of(topic: str, topics: Sequence[str], case: str) -> list[tuple[str, list[int]]]:
    """Returns names and partitions; a topic that is named again has one more partition."""
    names = {HERE: topic, ABSENT: f"{topic}-absent", "": ""}
    return [
        (names[name], [*LISTS[case], *([1] if name in topics[:number] else [])]) for number, name in enumerate(topics)
    ]


def offset_commit(group: str, named: Named, ids: dict[str, bytes]) -> object:
    topics = [
        committing.OffsetCommitRequestTopic(
            name=name,
            topic_id=ids.get(name, NO_UUID),
            partitions=[
                committing.OffsetCommitRequestPartition(partition_index=n, committed_offset=5, committed_metadata="")
                for n in indexes
            ],
        )
        for name, indexes in named
    ]
    return committing.OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=topics, retention_time_ms=-1
    )


def offset_fetch(group: str, named: Named, ids: dict[str, bytes]) -> object:
    new = [
        fetching.OffsetFetchRequestTopics(name=name, topic_id=ids.get(name, NO_UUID), partition_indexes=indexes)
        for name, indexes in named
    ]
    old = [fetching.OffsetFetchRequestTopic(name=name, partition_indexes=indexes) for name, indexes in named]
    groups = [fetching.OffsetFetchRequestGroup(group_id=group, topics=new)]
    return fetching.OffsetFetchRequest(group_id=group, topics=old, groups=groups)


def offset_delete(group: str, named: Named, ids: dict[str, bytes]) -> object:
    topics = [
        deleting.OffsetDeleteRequestTopic(
            name=name, partitions=[deleting.OffsetDeleteRequestPartition(partition_index=n) for n in indexes]
        )
        for name, indexes in named
    ]
    return deleting.OffsetDeleteRequest(group_id=group, topics=topics)


def describe_offsets(group: str, named: Named, ids: dict[str, bytes]) -> object:
    topics = [
        telling.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=indexes) for name, indexes in named
    ]
    requested = telling.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=topics)
    return telling.DescribeShareGroupOffsetsRequest(groups=[requested])


def alter_offsets(group: str, named: Named, ids: dict[str, bytes]) -> object:
    topics = [
        altering.AlterShareGroupOffsetsRequestTopic(
            topic_name=name,
            partitions=[
                altering.AlterShareGroupOffsetsRequestPartition(partition_index=n, start_offset=7) for n in indexes
            ],
        )
        for name, indexes in named
    ]
    return altering.AlterShareGroupOffsetsRequest(group_id=group, topics=topics)


def delete_offsets(group: str, named: Named, ids: dict[str, bytes]) -> object:
    topics = [removing.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name, _ in named]
    return removing.DeleteShareGroupOffsetsRequest(group_id=group, topics=topics)


def initialize(group: str, named: Named, ids: dict[str, bytes]) -> object:
    topics = [
        beginning.InitializeStateData(
            topic_id=ids.get(name, b"\x01" * 16),
            partitions=[beginning.PartitionData(partition=n, state_epoch=1, start_offset=3) for n in indexes],
        )
        for name, indexes in named
    ]
    return beginning.InitializeShareGroupStateRequest(group_id=group, topics=topics)


def read(group: str, named: Named, ids: dict[str, bytes]) -> object:
    topics = [
        reading.ReadStateData(
            topic_id=ids.get(name, b"\x01" * 16),
            partitions=[reading.PartitionData(partition=n, leader_epoch=0) for n in indexes],
        )
        for name, indexes in named
    ]
    return reading.ReadShareGroupStateRequest(group_id=group, topics=topics)


def summarize(group: str, named: Named, ids: dict[str, bytes]) -> object:
    topics = [
        summing.ReadStateSummaryData(
            topic_id=ids.get(name, b"\x01" * 16),
            partitions=[summing.PartitionData(partition=n, leader_epoch=0) for n in indexes],
        )
        for name, indexes in named
    ]
    return summing.ReadShareGroupStateSummaryRequest(group_id=group, topics=topics)


def write(group: str, named: Named, ids: dict[str, bytes]) -> object:
    topics = [
        writing.WriteStateData(
            topic_id=ids.get(name, b"\x01" * 16),
            partitions=[
                writing.PartitionData(
                    partition=n, state_epoch=1, leader_epoch=0, start_offset=3, delivery_complete_count=0,
                    state_batches=[],
                )
                for n in indexes
            ],
        )
        for name, indexes in named
    ]  # fmt: skip
    return writing.WriteShareGroupStateRequest(group_id=group, topics=topics)


def delete(group: str, named: Named, ids: dict[str, bytes]) -> object:
    topics = [
        forgetting.DeleteStateData(
            topic_id=ids.get(name, b"\x01" * 16), partitions=[forgetting.PartitionData(partition=n) for n in indexes]
        )
        for name, indexes in named
    ]
    return forgetting.DeleteShareGroupStateRequest(group_id=group, topics=topics)


BUILDS: dict[str, tuple[type, Build]] = {
    "OffsetCommit": (committing.OffsetCommitRequest, offset_commit),
    "OffsetFetch": (fetching.OffsetFetchRequest, offset_fetch),
    "OffsetDelete": (deleting.OffsetDeleteRequest, offset_delete),
    "DescribeShareGroupOffsets": (telling.DescribeShareGroupOffsetsRequest, describe_offsets),
    "AlterShareGroupOffsets": (altering.AlterShareGroupOffsetsRequest, alter_offsets),
    "DeleteShareGroupOffsets": (removing.DeleteShareGroupOffsetsRequest, delete_offsets),
    "InitializeShareGroupState": (beginning.InitializeShareGroupStateRequest, initialize),
    "ReadShareGroupState": (reading.ReadShareGroupStateRequest, read),
    "ReadShareGroupStateSummary": (summing.ReadShareGroupStateSummaryRequest, summarize),
    "WriteShareGroupState": (writing.WriteShareGroupStateRequest, write),
    "DeleteShareGroupState": (forgetting.DeleteShareGroupStateRequest, delete),
}


def find_coordinators(peer: Peer) -> None:
    """Waits for the coordinators of groups and transactions."""
    peer.find_coordinator("group", GROUP)
    peer.find_coordinator("transactional id", TRANSACTION)
    request = HeartbeatRequest(group_id="none", generation_id=1, member_id="x")
    peer.wait_for(request, 4, lambda answer: answer.error_code == UNKNOWN_MEMBER_ID)


@pytest.fixture(autouse=True)
def coordinators(both: Both) -> None:
    for peer in (both.pair.odradek, both.pair.apache):
        find_coordinators(peer)


def prepare(peer: Peer, api: str, group: str, ids: dict[str, bytes]) -> None:
    """Creates the group's data that the requests are about. Not compared."""
    everything = [(name, [0, 1]) for name in ids]
    if api in ("OffsetFetch", "OffsetDelete"):
        peer.quietly(offset_commit(group, everything, ids), COMMIT_VERSION)
    elif api in ("ReadShareGroupState", "ReadShareGroupStateSummary", "WriteShareGroupState", "DeleteShareGroupState"):
        peer.quietly(initialize(group, everything, ids), 0)


@pytest.mark.parametrize(
    ("api", "case"), [(api, case) for api in BUILDS for case in LISTS if (api, case) not in UNANSWERED]
)
def test_topics_and_partitions(both: Both, api: str, case: str, topic: str) -> None:
    """Runs once for each list of topics, with a separate group each."""
    request, build = BUILDS[api]

    def script(peer: Peer) -> None:
        state_of(peer, topic, 2)
        ids = {name: topic_id for topic_id, name in peer.names.items() if name == topic}
        for version in both.pair.versions(request):
            for number, topics in enumerate(TOPICS):
                group = f"{topic}-{version}-{number}"
                prepare(peer, api, group, ids)
                for name in (group, ""):
                    peer.try_ask(build(name, topics_of(topic, topics, case), ids), version)

    both(script, allowed=(*OWN_WORDS, *NOTHING_TO_TELL, *NO_PARTITION_OF_A_SHARE_GROUP))


@pytest.mark.parametrize("case", LISTS)
@pytest.mark.parametrize("topics", TOPICS, ids=str)
def test_offsets_of_a_transaction(both: Both, case: str, topics: tuple[str, ...], topic: str) -> None:
    def script(peer: Peer) -> None:
        txn = Transacting(peer, topic)
        txn.add_offsets()
        ids = {name: topic_id for topic_id, name in peer.names.items() if name == topic}
        for version in both.pair.versions(pending.TxnOffsetCommitRequest):
            for producer in (txn.producer, Producer(txn.producer.producer_id, txn.producer.epoch + 1)):
                requested = [
                    pending.TxnOffsetCommitRequestTopic(
                        name=name,
                        topic_id=ids.get(name, NO_UUID),
                        partitions=[
                            pending.TxnOffsetCommitRequestPartition(
                                partition_index=n, committed_offset=4, committed_metadata="m"
                            )
                            for n in indexes
                        ],
                    )
                    for name, indexes in topics_of(topic, topics, case)
                ]
                request = pending.TxnOffsetCommitRequest(
                    transactional_id=txn.name, group_id=txn.group, producer_id=producer.producer_id,
                    producer_epoch=producer.epoch, generation_id_or_member_epoch=-1, member_id="", topics=requested,
                )  # fmt: skip
                peer.try_ask(request, version)
        txn.end()

    both(script)


@pytest.mark.parametrize("case", sorted(LISTS.keys() - NO_ANSWER))
@pytest.mark.parametrize("topics", [topics for topics in TOPICS if topics != (HERE, HERE)], ids=str)
def test_markers(both: Both, case: str, topics: tuple[str, ...], topic: str) -> None:
    def script(peer: Peer) -> None:
        txn = Transacting(peer, topic)
        for version in both.pair.versions(marking.WriteTxnMarkersRequest):
            named = [
                marking.WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
                for name, indexes in topics_of(topic, topics, case)
            ]
            markers = [
                marking.WritableTxnMarker(
                    producer_id=txn.producer.producer_id + other, producer_epoch=txn.producer.epoch,
                    transaction_result=False, topics=named, coordinator_epoch=0,
                )
                for other in (0, 0, 1)
            ]  # fmt: skip
            for few in ([], markers[:1], markers[:2], markers):
                peer.try_ask(marking.WriteTxnMarkersRequest(markers=few), version)

    both(script)


@pytest.mark.parametrize("case", LISTS)
@pytest.mark.parametrize("topics", TOPICS, ids=str)
def test_partitions_of_a_transaction(both: Both, case: str, topics: tuple[str, ...], topic: str) -> None:
    def script(peer: Peer) -> None:
        txn = Transacting(peer, topic)
        named = [
            AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in topics_of(topic, topics, case)
        ]
        for version in both.pair.versions(AddPartitionsToTxnRequest):
            for wrong in (0, 1):
                request = AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=txn.name,
                    v3_and_below_producer_id=txn.producer.producer_id,
                    v3_and_below_producer_epoch=txn.producer.epoch + wrong,
                    v3_and_below_topics=named,
                    transactions=[
                        AddPartitionsToTxnTransaction(
                            transactional_id=name,
                            producer_id=txn.producer.producer_id,
                            producer_epoch=txn.producer.epoch + wrong,
                            verify_only=verify,
                            topics=named,
                        )
                        for name, verify in ((txn.name, False), (f"{txn.name}-other", True))
                    ],
                )
                peer.try_ask(request, version)
        txn.end(version=4)

    both(script)
