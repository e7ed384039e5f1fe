"""The world that requests are about: topics with data, groups with members, open transactions, active share groups.

It is created by requests alone, so that any two brokers can have the same one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any, Final

from protocol.errors import ErrorCode
from protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.read_share_group_state_summary import PartitionData as StatePartition
from protocol.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest, ReadStateSummaryData
from protocol.messages.share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, Subtopology, Topology
from protocol.records import building
from protocol.records.batch import AT_ATTRIBUTES, AT_PRODUCER_ID
from protocol.records.compression import Compression
from tests.fuzz.drawing import SUBSCRIPTION
from tests.fuzz.lies import batches, records, sealed
from tests.fuzz.vocabulary import Group, Member, Transactional, Vocabulary
from tests.group_requests import join_group, offset_commit, sync_group
from tests.interop.conformance.peers import Peer

TOPICS: Final[dict[str, tuple[int, dict[str, str]]]] = {
    "plain": (2, {}),
    "codecs": (1, {}),
    "compact": (1, {"cleanup_policy": "compact"}),
    "transactions": (2, {}),
    "empty": (3, {}),
    "stamped": (1, {"message_timestamp_type": "LogAppendTime"}),
}
AGAIN: Final = frozenset({
    ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REBALANCE_IN_PROGRESS,
})  # fmt: skip
TRANSACTIONAL: Final = 0x10
GROUP, TRANSACTION = 0, 1
SESSION_MS, REBALANCE_MS = 600_000, 1_500


class FuzzWorld:
    """The world of one broker."""

    def __init__(self, peer: Peer, prefix: str) -> None:
        self.peer = peer
        self.prefix = prefix

    def build(self) -> Vocabulary:
        """Builds the whole world; its names must be unused."""
        names = self.names()
        ids = {
            name: self.peer.create(name, TOPICS[kind][0], **TOPICS[kind][1])
            for kind, name in zip(TOPICS, names, strict=True)
        }
        self.fill(ids)
        transactionals = self.transactions(ids)
        groups = [
            self.classic_group("classic"),
            self.consumer_group("consumer"),
            self.share_group("share", ids),
            self.streams_group("streams"),
            self.offsets_alone("offsets"),
            Group(f"{self.prefix}-absent"),
        ]
        return Vocabulary(names, ids, groups, transactionals, batches(transactionals), prefix=f"{self.prefix}-new")

    def names(self) -> list[str]:
        return [f"{self.prefix}-{kind}" for kind in TOPICS]

    # Topics.

    def fill(self, ids: dict[str, bytes]) -> None:
        whole = bytes(building.build(records(3)))
        for partition in (0, 1, 0):
            self.produce("plain", ids, partition, whole)
        for codec in Compression:
            self.produce("codecs", ids, 0, bytes(building.build(records(4), compression=codec)))
        self.produce("compact", ids, 0, whole)
        self.produce("compact", ids, 0, whole)
        self.produce("stamped", ids, 0, whole)

    def produce(
        self, kind: str, ids: dict[str, bytes], partition: int, data: bytes, transaction: str | None = None
    ) -> None:
        name = f"{self.prefix}-{kind}"
        topic = TopicProduceData(
            name=name, topic_id=ids[name], partition_data=[PartitionProduceData(index=partition, records=data)]
        )
        request = ProduceRequest(transactional_id=transaction, acks=-1, timeout_ms=5000, topic_data=[topic])
        self.ask(request, 12, lambda answer: answer.responses[0].partition_responses[0].error_code)

    # Transactions.

    def transactions(self, ids: dict[str, bytes]) -> list[Transactional]:
        """Runs an open transaction, a committed and an aborted one, and creates a producer without any."""
        transactionals = []
        for name, committed in (("committed", True), ("aborted", False), ("open", None), ("idle", None)):
            one = self.producer(f"{self.prefix}-{name}")
            if name != "idle":
                self.write_in_transaction(one, ids)
            if committed is not None:
                end = EndTxnRequest(
                    transactional_id=one.name,
                    producer_id=one.producer_id,
                    producer_epoch=one.epoch,
                    committed=committed,
                )
                self.ask(end, 3)
                self.peer.wait_for(
                    DescribeTransactionsRequest(transactional_ids=[one.name]),
                    0,
                    lambda answer: not answer.transaction_states[0].transaction_state.startswith("Prepare"),
                )
            transactionals.append(one)
        return transactionals

    def producer(self, name: str) -> Transactional:
        self.peer.find_coordinator(name, TRANSACTION)
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=600_000)
        answer = self.ask(request, 4)
        return Transactional(name, answer.producer_id, answer.producer_epoch)

    def write_in_transaction(self, one: Transactional, ids: dict[str, bytes]) -> None:
        topic = AddPartitionsToTxnTopic(name=f"{self.prefix}-transactions", partitions=[0, 1])
        add = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=one.name,
            v3_and_below_producer_id=one.producer_id,
            v3_and_below_producer_epoch=one.epoch,
            v3_and_below_topics=[topic],
        )
        self.ask(
            add, 3, lambda answer: answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        )
        whole = building.build(records(2))
        struct.pack_into(">qhi", whole, AT_PRODUCER_ID, one.producer_id, one.epoch, 0)
        struct.pack_into(">h", whole, AT_ATTRIBUTES, TRANSACTIONAL)
        self.produce("transactions", ids, 0, sealed(whole), one.name)

    # Groups.

    def classic_group(self, kind: str) -> Group:
        name = self.coordinated(kind)
        request = join_group(
            name, metadata=SUBSCRIPTION, session_ms=SESSION_MS, rebalance_ms=REBALANCE_MS,
            group_instance_id=f"{name}-static",
        )  # fmt: skip
        joined = self.ask(request, 9)
        member = Member(joined.member_id, joined.generation_id, f"{name}-static")
        sync = sync_group(
            name, member.member_id, member.epoch, {member.member_id: b"\0\0\0\0\0\0\xff\xff\xff\xff"},
            group_instance_id=member.instance_id, protocol_type="consumer", protocol_name="range",
        )  # fmt: skip
        self.ask(sync, 5, lambda answer: 0)
        self.commit(name, member)
        return Group(name, [member])

    def consumer_group(self, kind: str) -> Group:
        name = self.coordinated(kind)
        members = [Member(f"{name}-member-{number}", 0) for number in range(2)]
        for member in members:
            member.epoch = self.beat(ConsumerGroupHeartbeatRequest(
                group_id=name,
                member_id=member.member_id,
                member_epoch=0,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=[f"{self.prefix}-plain"],
                topic_partitions=[],
            ), 1)  # fmt: skip
        self.commit(name, members[-1])
        return Group(name, members)

    def share_group(self, kind: str, ids: dict[str, bytes]) -> Group:
        name = self.coordinated(kind)
        topic = f"{self.prefix}-plain"
        member = Member("BBBBBBBBBBBBBBBBBBBBBA", 0)
        request = ShareGroupHeartbeatRequest(
            group_id=name, member_id=member.member_id, member_epoch=0, subscribed_topic_names=[topic]
        )
        member.epoch = self.beat(request, 1)
        fetched = FetchTopic(
            topic_id=ids[topic], partitions=[FetchPartition(partition_index=0, acknowledgement_batches=[])]
        )
        fetch = ShareFetchRequest(
            group_id=name, member_id=member.member_id, share_session_epoch=0, max_wait_ms=50, min_bytes=1,
            max_bytes=1 << 20, max_records=2, batch_size=2, topics=[fetched], forgotten_topics_data=[],
        )  # fmt: skip
        self.ask(fetch, 1, lambda answer: 0)
        self.initialized(name, member, ids[topic])
        return Group(name, [member])

    def streams_group(self, kind: str) -> Group:
        name = self.coordinated(kind)
        member = Member(f"{name}-member", 0)
        subtopology = Subtopology(
            subtopology_id="0", source_topics=[f"{self.prefix}-plain"], source_topic_regex=[],
            state_changelog_topics=[], repartition_sink_topics=[], repartition_source_topics=[], copartition_groups=[],
        )  # fmt: skip
        member.epoch = self.beat(StreamsGroupHeartbeatRequest(
            group_id=name,
            member_id=member.member_id,
            member_epoch=0,
            endpoint_information_epoch=0,
            rebalance_timeout_ms=60_000,
            topology=Topology(epoch=0, subtopologies=[subtopology]),
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
            process_id="process",
        ), 0)  # fmt: skip
        return Group(name, [member])

    def initialized(self, group: str, member: Member, topic_id: bytes) -> None:
        """Waits for the state of the share partitions. A heartbeat repeats a failed initialization, which in Apache
        Kafka fails while __share_group_state is being created."""
        partitions = [StatePartition(partition=index, leader_epoch=-1) for index in range(TOPICS["plain"][0])]
        topic = ReadStateSummaryData(topic_id=topic_id, partitions=partitions)
        summary = ReadShareGroupStateSummaryRequest(group_id=group, topics=[topic])
        heartbeat = ShareGroupHeartbeatRequest(group_id=group, member_id=member.member_id, member_epoch=member.epoch)

        def ask() -> Any:
            self.peer.quietly(heartbeat, 1)
            return self.peer.quietly(summary, 1)

        self.peer.wait_until(ask, lambda answer: all(one.state_epoch for one in answer.results[0].partitions), group)

    def offsets_alone(self, kind: str) -> Group:
        name = self.coordinated(kind)
        self.commit(name, Member("", -1))
        return Group(name)

    def coordinated(self, kind: str) -> str:
        name = f"{self.prefix}-{kind}"
        self.peer.find_coordinator(name, GROUP)
        return name

    def beat(self, request: Any, version: int) -> int:
        answer = self.ask(request, version, lambda answer: answer.error_code if answer.error_code in AGAIN else 0)
        return int(answer.member_epoch)

    def commit(self, group: str, member: Member) -> None:
        offsets = {f"{self.prefix}-plain": {0: 2, 1: 2}, f"{self.prefix}-codecs": {0: 2}}
        request = offset_commit(
            group, offsets, metadata="m", generation_id_or_member_epoch=member.epoch, member_id=member.member_id,
            group_instance_id=member.instance_id,
        )  # fmt: skip
        self.ask(request, 9, lambda answer: first_again(part.error_code for part in answer.topics[0].partitions))

    def ask(self, request: object, version: int, error: Callable[[Any], int] | None = None) -> Any:
        """Returns the answer, once the broker is ready; errors of a world that fuzzing has changed are returned."""
        code = error or (lambda answer: answer.error_code)
        return self.peer.wait_for(request, version, lambda answer: answer is not None and code(answer) not in AGAIN)


def first_again(codes: Iterable[int]) -> int:
    return next((code for code in codes if code in AGAIN), 0)
