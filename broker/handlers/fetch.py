"""Fetch (1): read record batches from partitions, waiting until there is enough.

v0-1 read message sets v0 and v2-3 message sets v1: batches are down-converted for them; v3 adds the response's size
limit, v4 the isolation level (KIP-98), v5 log start offsets, v7 incremental sessions (KIP-227), v9 leader epochs
(KIP-320), v10 zstd (KIP-110), v11 the client's rack (KIP-392), v12 is flexible and finds diverging logs (KIP-595), v13
names topics by id (KIP-516), v15 moves the replica id into a tag (KIP-903), v16 tells the current leader (KIP-951),
v17 and v18 serve replicas of the metadata log. Rack-aware replica choice has nothing to choose from on one node.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from broker.exchange.authorisation import CLUSTER_ACTION_CLUSTER, READ_TOPIC, by_handler
from broker.exchange.pending import ParkedCall
from broker.message_sets import fetch_messages
from broker.replica.partition import Partition
from broker.replica.replica import READ_COMMITTED, Fetched
from broker.replica.roles import NO_EPOCH, LeaderMoved
from broker.requests.api import Api
from broker.requests.call import Call
from broker.requests.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchedPartition,
    FetchSession,
    PartitionKey,
)
from broker.requests.leaders import nodes
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from protocol.records.batch import LOG_OVERHEAD
from protocol.types import NO_UUID, Buffer
from storage.segment.cold import ColdRead

FIRST_WHOLE_BATCH_VERSION = 3
"""Since then nobody is given a part of a batch alone: a client knows to ask again."""

FIRST_SESSION_VERSION = 7
FIRST_TOPIC_ID_VERSION = 13
FIRST_LEADER_VERSION = 16
TELLING_THE_LEADER = frozenset({ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER})
FIRST_BATCH_VERSION = 4
"""Before it, answers are message sets."""

FIRST_REPLICA_STATE_VERSION = 15
"""Since then a tag says which replica fetches."""

NO_OFFSET = -1
BATCH_LENGTH = struct.Struct(">i")


async def fetch(
    call: Call[FetchRequest],
) -> FetchResponse | ParkedFetch:
    """Answers at once when there is enough, an error or no time to wait; else once an append made it enough."""
    plan = Plan(call)
    gathered = plan.gather()
    if call.version < FIRST_BATCH_VERSION:
        return await fetch_messages(plan, gathered)
    if gathered.cold:
        return await fetch_cold(plan, gathered.cold)
    if plan.is_enough(gathered) or call.request.max_wait_ms <= 0:
        return plan.response(gathered)
    return ParkedFetch(plan, gathered, call.request.max_wait_ms)


async def fetch_cold(plan: Plan, cold: Sequence[ColdRead]) -> FetchResponse | ParkedFetch:
    """What is not in memory is read by a thread first: the event loop must not wait for a disk."""
    clock, max_wait_ms = plan.call.broker.clock, plan.call.request.max_wait_ms
    deadline_ms = clock.monotonic_ms() + max_wait_ms
    await plan.call.broker.disk_work.read_ahead(cold)
    gathered = plan.gather_warm()
    left_ms = deadline_ms - clock.monotonic_ms()
    return plan.response(gathered) if plan.is_enough(gathered) or left_ms <= 0 else ParkedFetch(plan, gathered, left_ms)


class ParkedFetch(ParkedCall):
    """One that waits for bytes."""

    __slots__ = ("plan",)

    def __init__(self, plan: Plan, gathered: Gathered, max_wait_ms: int) -> None:
        request = plan.call.request
        missing_bytes = request.min_bytes - gathered.size_bytes
        committed_only = request.isolation_level == READ_COMMITTED
        super().__init__(plan.call.context, missing_bytes, committed_only=committed_only)
        self.plan = plan
        self.watch(gathered.watched)
        plan.call.broker.timeouts.add(self, max_wait_ms)

    def find(self, *, is_last: bool) -> FetchResponse | None:
        gathered = self.plan.gather()
        if is_last or self.plan.is_enough(gathered):
            return self.plan.response(gathered)
        self.missing_bytes = self.plan.call.request.min_bytes - gathered.size_bytes
        self.watch(gathered.watched)
        return None


class Gathered:
    """One pass over the partitions of a fetch: what each answers."""

    __slots__ = ("answers", "cold", "cold_bytes", "size_bytes", "unknown", "urgent", "watched")

    def __init__(self) -> None:
        self.cold: list[ColdRead] = []
        """Reads that would wait for a disk: they are answered after that."""
        self.cold_bytes = 0
        self.answers: list[tuple[FetchedPartition, PartitionData]] = []
        self.unknown: list[tuple[FetchedPartition, PartitionData]] = []
        """Partitions that are not here. They are answered last, and the others are waited for all the same: else a
        consumer of a topic that was deleted would ask without pause."""
        self.size_bytes = 0
        self.urgent = False
        """An error or a diverging log: the client should hear of it now."""
        self.watched: list[Partition] = []


class Plan:
    """What one Fetch asks for: its session, if it has one, and its partitions in the order they are served."""

    def __init__(self, call: Call[FetchRequest]) -> None:
        self.call = call
        request = call.request
        self.uses_topic_ids = call.version >= FIRST_TOPIC_ID_VERSION
        self.max_bytes = min(request.max_bytes, call.broker.config.fetch_max_bytes)
        self.replica_id = (
            request.replica_state.replica_id if call.version >= FIRST_REPLICA_STATE_VERSION else request.replica_id
        )
        """The broker that fetches to follow; negative for consumers."""
        self.is_warm = False
        """Whether what would have waited for a disk has been read ahead."""
        self.session: FetchSession | None = None
        self.is_new = True
        self.partitions: Iterable[FetchedPartition]
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._whole()
        else:
            self._incremental()

    def _whole(self) -> None:
        """A fetch that names all its partitions; epoch 0 opens a session, -1 closes the one it names or has none."""
        request, sessions = self.call.request, self.call.broker.fetch_sessions
        if request.session_id != NO_SESSION:
            sessions.close(request.session_id)
        named = self._named_once()
        if request.session_epoch == INITIAL_EPOCH and self.call.version >= FIRST_SESSION_VERSION:
            self.session = sessions.create(len(named), self.uses_topic_ids, self.call.now_ms)
        if self.session is not None:
            self.session.partitions.update(named)
        self.partitions = named.values()

    def _incremental(self) -> None:
        """A fetch that continues a session, with partitions added, changed and forgotten; without any left, the session
        is over."""
        request = self.call.request
        sessions = self.call.broker.fetch_sessions
        session = sessions.find(request.session_id, request.session_epoch, self.uses_topic_ids, self.call.now_ms)
        before = len(session.partitions)
        for key, asked in self._asked():
            session.partitions[key] = self._named(key, asked, session.partitions.get(key))
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                session.partitions.pop(self._key(topic.topic, topic.topic_id, index), None)
        sessions.keep(session, before)
        if session.partitions:
            self.session, self.is_new = session, False
            self.partitions = session.partitions.values()
        else:
            sessions.close(session.session_id)
            self.partitions = self._named_once().values()

    def _named_once(self) -> dict[PartitionKey, FetchedPartition]:
        """A partition that is named twice is read where it was named last."""
        return {key: self._named(key, asked) for key, asked in self._asked()}

    def gather_warm(self) -> Gathered:
        """The same once what would have waited for a disk was read ahead."""
        self.is_warm = True
        return self.gather()

    def is_enough(self, gathered: Gathered) -> bool:
        """Whether there is something to answer now, or nothing to wait for."""
        return gathered.size_bytes >= self.call.request.min_bytes or gathered.urgent or not gathered.watched

    def _asked(self) -> Iterable[tuple[PartitionKey, FetchPartition]]:
        for topic in self.call.request.topics:
            for asked in topic.partitions:
                yield self._key(topic.topic, topic.topic_id, asked.partition), asked

    def _key(self, topic: str, topic_id: bytes, partition: int) -> PartitionKey:
        return PartitionKey("", topic_id, partition) if self.uses_topic_ids else PartitionKey(topic, NO_UUID, partition)

    def _named(
        self, key: PartitionKey, asked: FetchPartition, known: FetchedPartition | None = None
    ) -> FetchedPartition:
        partition = known or FetchedPartition(key)
        partition.fetch_offset = asked.fetch_offset
        partition.log_start_offset = asked.log_start_offset
        partition.max_bytes = asked.partition_max_bytes
        partition.current_leader_epoch = max(asked.current_leader_epoch, NO_EPOCH)
        partition.last_fetched_epoch = asked.last_fetched_epoch
        return partition

    def gather(self) -> Gathered:
        """Reads every partition once; the first that has anything gives at least one whole batch."""
        gathered = Gathered()
        for wanted in self.partitions:
            try:
                partition = self._partition(wanted)
            except LeaderMoved as error:
                gathered.answers.append((wanted, self._refused(wanted, error)))
                gathered.urgent = True
                continue
            except KafkaError as error:
                data = empty(wanted, error.code)
                data.aborted_transactions = []
                gathered.unknown.append((wanted, data))
                continue
            data = self._read(wanted, partition, gathered)
            gathered.answers.append((wanted, data))
            if data.error_code or data.diverging_epoch.end_offset != NO_OFFSET:
                gathered.urgent = True
        return gathered

    def _partition(self, wanted: FetchedPartition) -> Partition:
        """The partition. A session remembers the names that its topic ids had."""
        replicas = self.call.broker.replicas
        if not self.uses_topic_ids:
            return replicas.partition(wanted.key.topic, wanted.key.partition)
        if wanted.topic is None:
            wanted.topic = replicas.name_of(wanted.key.topic_id)
        return replicas.partition(wanted.topic, wanted.key.partition)

    def _read(self, wanted: FetchedPartition, partition: Partition, gathered: Gathered) -> PartitionData:
        try:
            self._check(partition, wanted)
            diverging = diverging_epoch(partition, wanted)
            if diverging is not None:
                return empty(wanted, ErrorCode.NONE, partition, diverging)
            left = max(self.max_bytes - gathered.size_bytes - gathered.cold_bytes, 0)
            is_first = not gathered.size_bytes
            if not self.is_warm and left and self._is_cold(partition, wanted, min(wanted.max_bytes, left), gathered):
                return empty(wanted, ErrorCode.NONE)
            fetched = partition.fetch(
                wanted.fetch_offset, min(wanted.max_bytes, left), self.call.request.isolation_level, is_first
            )
            data = self._answer(wanted, partition, fetched)
        except KafkaError as error:
            return self._refused(wanted, error)
        gathered.watched.append(partition)
        if data.records and not is_first and self.call.version >= FIRST_WHOLE_BATCH_VERSION and is_cut(data.records):
            data.records = b""
        else:
            gathered.size_bytes += fetched.read.size_bytes
        return data

    def _refused(self, wanted: FetchedPartition, error: KafkaError) -> PartitionData:
        """An error, with the leader that the client should go to (KIP-951)."""
        data = empty(wanted, error.code)
        if (
            isinstance(error, LeaderMoved)
            and error.code in TELLING_THE_LEADER
            and self.call.version >= FIRST_LEADER_VERSION
        ):
            data.current_leader = LeaderIdAndEpoch(leader_id=error.leader_id, leader_epoch=error.leader_epoch)
        return data

    def _is_cold(self, partition: Partition, wanted: FetchedPartition, max_bytes: int, gathered: Gathered) -> bool:
        cold = partition.cold_read(wanted.fetch_offset, max_bytes)
        if cold is None:
            return False
        gathered.cold.append(cold)
        gathered.cold_bytes += max_bytes
        return True

    def _check(self, partition: Partition, wanted: FetchedPartition) -> None:
        if self.uses_topic_ids and partition.topic_id != wanted.key.topic_id:
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
        partition.check_leads(wanted.current_leader_epoch)
        if self.replica_id >= 0 and not self._is_replica(partition):
            knows_more = wanted.current_leader_epoch >= 0  # of an assignment that has yet to come here
            raise partition.moved(ErrorCode.UNKNOWN_LEADER_EPOCH if knows_more else ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self.call.version < FIRST_BATCH_VERSION and partition.config.compression_type == "zstd":
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)

    def _is_replica(self, partition: Partition) -> bool:
        """Whether the broker that fetches is one of the partition's other replicas."""
        topic = self.call.broker.image.topic(partition.name.topic)
        known = None if topic is None else topic.partitions.get(partition.name.partition)
        return known is not None and self.replica_id in known.replicas and self.replica_id != partition.role.leader_id

    def _answer(self, wanted: FetchedPartition, partition: Partition, fetched: Fetched) -> PartitionData:
        data = PartitionData(
            partition_index=wanted.key.partition,
            error_code=0,
            high_watermark=fetched.high_watermark,
            last_stable_offset=fetched.last_stable_offset,
            log_start_offset=fetched.log_start_offset,
            aborted_transactions=None,
            records=fetched.read.parts[0] if fetched.read.parts else b"",
        )
        if self.call.request.isolation_level == READ_COMMITTED:
            data.aborted_transactions = aborted(partition, fetched)
        return data

    def response(self, gathered: Gathered) -> FetchResponse:
        """All partitions for a whole fetch; for a session that goes on, those with news."""
        topics: list[FetchableTopicResponse] = []
        last: FetchableTopicResponse | None = None
        unknown = sorted(gathered.unknown, key=lambda answer: answer[1].error_code != ErrorCode.UNKNOWN_TOPIC_ID)
        for wanted, data in (*gathered.answers, *unknown):
            news = wanted.changed(data.high_watermark, data.log_start_offset)
            if not (
                self.is_new or news or data.error_code or data.records or data.diverging_epoch.end_offset != NO_OFFSET
            ):
                continue
            key = wanted.key
            if data.records and self.session is not None and not self.is_new:
                self.session.served(key)
            if last is None or last.topic != key.topic or last.topic_id != key.topic_id:
                last = FetchableTopicResponse(topic=key.topic, topic_id=key.topic_id, partitions=[])
                topics.append(last)
            last.partitions.append(data)
        session_id = self.session.session_id if self.session is not None else NO_SESSION
        return FetchResponse(session_id=session_id, responses=topics, node_endpoints=self._endpoints(topics))

    def _endpoints(self, topics: Iterable[FetchableTopicResponse]) -> list[NodeEndpoint]:
        """Where the leaders are that the answer names: it saves a consumer a Metadata (KIP-951)."""
        if self.replica_id >= 0:
            return []
        leaders = {data.current_leader.leader_id for topic in topics for data in topic.partitions if data.error_code}
        if not leaders:
            return []
        found = nodes(self.call.broker.image, self.call.context.listener, leaders)
        return [NodeEndpoint(node_id=one.node_id, host=one.host, port=one.port, rack=one.rack) for one in found]


def is_cut(records: Buffer) -> bool:
    """Whether not even the first batch is whole."""
    return len(records) < LOG_OVERHEAD or len(records) < LOG_OVERHEAD + BATCH_LENGTH.unpack_from(records, 8)[0]


def empty(
    wanted: FetchedPartition,
    code: ErrorCode,
    partition: Partition | None = None,
    diverging: EpochEndOffset | None = None,
) -> PartitionData:
    """A partition that gives no records, and why."""
    data = PartitionData(
        partition_index=wanted.key.partition,
        error_code=code,
        high_watermark=NO_OFFSET if partition is None else partition.high_watermark,
        records=b"",
        aborted_transactions=None,
    )
    if partition is not None:
        data.last_stable_offset, data.log_start_offset = partition.last_stable_offset, partition.log_start_offset
    if diverging is not None:
        data.diverging_epoch = diverging
    return data


def diverging_epoch(partition: Partition, wanted: FetchedPartition) -> EpochEndOffset | None:
    """Where the fetcher's log left this one, if it did (KIP-595)."""
    if wanted.last_fetched_epoch < 0:
        return None
    epoch, end_offset = partition.end_of_epoch(wanted.last_fetched_epoch)
    if epoch < 0 or end_offset < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def aborted(partition: Partition, fetched: Fetched) -> list[AbortedTransaction]:
    """The aborted transactions whose records a read_committed consumer must leave out (KIP-98)."""
    found = partition.aborted_in(fetched.read)
    return [AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset) for each in found]


API = Api(FetchRequest, FetchResponse, fetch, by_handler(CLUSTER_ACTION_CLUSTER, READ_TOPIC))
