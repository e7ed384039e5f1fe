"""The leader's part of the raft core: it sends its log to the replicas that fetch, and commits what a majority has.

Source: Kafka's LeaderState, KafkaRaftClient.handleFetchRequest and pollLeader.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.quorum import TOPIC_ID
from coordinator.cluster.snapshot import SnapshotId
from coordinator.cluster.topics.names import METADATA_TOPIC
from coordinator.quorum.log_end import LogEnd
from coordinator.quorum.log_state import BOOTSTRAP_SNAPSHOT, Diverging
from coordinator.quorum.pieces import PieceWish, SnapshotPiece
from coordinator.quorum.ready import AppendBatches, ReadRecords
from coordinator.quorum.replicas import SESSION_MS, UNKNOWN_MS, ReplicaKey, ReplicaProgress
from coordinator.quorum.roles import Role
from coordinator.quorum.rules import CHECK_QUORUM_FACTOR
from coordinator.quorum.voter_set import ControlRecord, VoterNode
from protocol.errors import ErrorCode, KafkaError
from protocol.messages import begin_quorum_epoch as begin
from protocol.messages import fetch, fetch_snapshot
from protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from protocol.records.batch import read_header, stamp
from protocol.records.building import build
from protocol.records.control import (
    ChangeVoter,
    KRaftVersionRecord,
    LeaderChangeMessage,
    QuorumRecord,
    VotersRecord,
    quorum_record,
)
from protocol.types import NO_UUID

if TYPE_CHECKING:
    from coordinator.quorum.core import Core
    from coordinator.quorum.voter_change import VoterChange

NO_OFFSET: Final = -1
FIRST_REPLICA_STATE: Final = 15
"""First version of Fetch with a replica's id in its state (KIP-903)."""

FIRST_FETCH_ENDPOINTS: Final = 17
"""First version of Fetch whose response has the leader's endpoint (KIP-853)."""

FIRST_SNAPSHOT_ENDPOINTS: Final = 1
"""First version of FetchSnapshot whose response has the leader's endpoint (KIP-853)."""

MAX_FETCH_BYTES: Final = 8 << 20
"""Maximum bytes of records in an answer, whatever the request allows (KafkaRaftClient.MAX_BATCH_SIZE_BYTES)."""

MAX_OBSERVERS: Final = 4_096
"""Maximum number of observers whose progress is stored. A peer can invent any number of ids."""

CAUGHT_UP_MS: Final = 3_600_000
"""A replica may become a voter if it has fetched within this time (LeaderState.isReplicaCaughtUp)."""


class DelayedFetch(NamedTuple):
    """A Fetch that waits for news."""

    ticket: int
    request: FetchRequest
    version: int
    listener: str
    deadline_ms: int


@dataclass(slots=True)
class FetchProgress:
    """The progress of a replica that fetches."""

    end_offset: int
    fetched_ms: int
    caught_up_ms: int = UNKNOWN_MS
    leader_end_offset: int = 0


class LeaderState:
    """The state of the epoch's leader."""

    role: ClassVar[Role] = Role.LEADER

    def __init__(self, core: Core, granting: Sequence[int]) -> None:
        self._core = core
        self.epoch_start_offset = core.log.end_offset
        self._granting = sorted(granting)
        self._progress: dict[ReplicaKey, FetchProgress] = {}
        self._fetched: set[int] = set()
        """Voters that have fetched since the last majority."""
        self._check_ms = self._next_check_ms()
        self._begin_ms = core.now_ms
        self._delayed: list[DelayedFetch] = []
        self.change: VoterChange | None = None
        """The change of the voter set that is under way."""
        self.reported: dict[int, VoterNode] = {}
        """Voters that have sent UpdateRaftVoter under kraft.version 0."""
        self.is_resigning = False

    # Begin and end of the epoch

    def begin(self) -> None:
        """Writes the epoch's first batch: the leader change, and the voters if the log has none or wrong data of this
        voter."""
        core = self._core
        records: list[QuorumRecord] = [self._leader_change()]
        voters, own = core.history.last, own_voter(core)
        if core.history.kraft_version > 0:
            listed = voters.get(own.key.node_id)
            if core.history.last_offset == NO_OFFSET or (listed is not None and not is_same_voter(listed, own)):
                voters = voters.with_voter(own)
                records += [
                    KRaftVersionRecord(version=0, k_raft_version=core.history.kraft_version),
                    voters.to_record(),
                ]
        self.append_control(records)

    def _leader_change(self) -> LeaderChangeMessage:
        return LeaderChangeMessage(
            version=0,
            leader_id=self._core.replica.key.node_id,
            voters=[ChangeVoter(voter_id=node_id) for node_id in self._core.voters.ids],
            granting_voters=[ChangeVoter(voter_id=node_id) for node_id in self._granting],
        )

    def end(self) -> None:
        """Answers everything that waits, because this node no longer leads."""
        change, self.change = self.change, None
        if change is not None:
            change.answer(self._core, ErrorCode.NOT_LEADER_OR_FOLLOWER, None)
        delayed, self._delayed = self._delayed, []
        for waiting in delayed:
            answer_fetch(self._core, waiting.request, waiting.version, waiting.listener, waiting.ticket)

    # The log

    def append(self, batch: bytearray, records: Sequence[QuorumRecord] = ()) -> int:
        """Appends a batch, with its control records, and returns the offset after it."""
        core, offset = self._core, self._core.log.end_offset
        stamp(batch, 0, offset, core.epoch)
        next_offset = read_header(batch).next_offset
        control = tuple(ControlRecord(offset + index, record) for index, record in enumerate(records))
        core.log.append([LogEnd(offset, core.epoch)], next_offset)
        core.history.add(control)
        core.out.writes.append(AppendBatches(batch, offset, next_offset, core.epoch, control))
        if any(isinstance(record, VotersRecord) for record in records):
            self._fetched &= set(core.voters.ids)
        self.commit()
        return next_offset

    def append_control(self, records: Sequence[QuorumRecord]) -> int:
        """Appends a control batch, and returns the offset after it."""
        now_ms = self._core.timestamp()
        batch = build([quorum_record(record, now_ms) for record in records], control=True)
        return self.append(batch, records)

    def commit(self) -> None:
        """Advances the high watermark to what a majority has, and answers the fetches that wait for it."""
        core, rules = self._core, self._core.rules
        voters = core.voters
        offsets = [self._offset_of(voter) for voter in core.other_voters]
        if rules.counts_itself(voters, core.replica.key):
            offsets.append(rules.counted_offset(core.log.flushed_offset, core.log.end_offset))
        offsets.sort(reverse=True)
        needed = rules.majority(len(voters))
        offset = offsets[needed - 1] if needed <= len(offsets) else NO_OFFSET
        if rules.may_commit(offset, self.epoch_start_offset) and offset <= core.log.end_offset:
            after = rules.high_watermark(core.high_watermark, offset)
            if after != core.high_watermark:
                core.high_watermark = core.out.high_watermark = after
                self._committed()
        self._answer_delayed()

    def _offset_of(self, voter: VoterNode) -> int:
        progress = self.progress_of(voter)
        return NO_OFFSET if progress is None else progress.end_offset

    def _committed(self) -> None:
        core = self._core
        if self.change is not None and self.change.is_committed(core.high_watermark):
            change, self.change = self.change, None
            change.answer(core, ErrorCode.NONE, None)
        if core.history.last_offset < core.high_watermark and not core.is_voter:
            self.is_resigning = True  # KAFKA-17608: the leader has committed its own removal

    @property
    def is_established(self) -> bool:
        """True once a record of this epoch is committed."""
        return self._core.high_watermark > self.epoch_start_offset

    def not_written(self, end_offset: int) -> None:
        """Handles the end of the log after a failed write: only the only voter goes on, if its epoch has begun."""
        core = self._core
        if self.change is not None and self.change.next_offset is not None and self.change.next_offset > end_offset:
            change, self.change = self.change, None
            change.answer(core, ErrorCode.KAFKA_STORAGE_ERROR, "the disk of the quorum's leader is full")
        if core.rules.checks_quorum(core.voters, core.replica.key) or end_offset <= self.epoch_start_offset:
            core.out.problems.append("the disk is full: resigns as the leader")
            self.is_resigning = True

    # What is due

    def poll(self) -> bool:
        """Does what is due. Returns True if this node resigns."""
        core = self._core
        if self.is_resigning or core.is_shutting_down or self._has_lost_majority():
            core.become_resigned(self._successors())
            return True
        if self.change is not None and core.now_ms >= self.change.deadline_ms:
            change, self.change = self.change, None
            change.answer(core, ErrorCode.REQUEST_TIMED_OUT, None)
        if self.change is not None:
            core.wake(self.change.deadline_ms)
        self._announce()
        self._answer_delayed()
        return False

    def _has_lost_majority(self) -> bool:
        core = self._core
        if not core.rules.checks_quorum(core.voters, core.replica.key):
            self._check_ms = self._next_check_ms()  # a second voter has this time for its first fetch
            return False
        if core.now_ms < self._check_ms:
            core.wake(self._check_ms)
            return False
        core.out.problems.append(f"a majority of {core.voters} has not fetched in epoch {core.epoch}: resigns")
        return True

    def _next_check_ms(self) -> int:
        return self._core.now_ms + int(self._core.config.fetch_timeout_ms * CHECK_QUORUM_FACTOR)

    def _count_fetch(self, key: ReplicaKey) -> None:
        core = self._core
        if not core.voters.is_voter(key):
            return
        self._fetched.add(key.node_id)
        if len(self._fetched) >= core.rules.fetches_required(core.voters, core.replica.key):
            self._fetched.clear()
            self._check_ms = self._next_check_ms()

    def _announce(self) -> None:
        """Sends BeginQuorumEpoch to the voters that have not fetched for half a fetch timeout."""
        core = self._core
        period_ms = core.config.fetch_timeout_ms // 2
        if core.now_ms < self._begin_ms:
            core.wake(self._begin_ms)
            return
        next_ms = core.now_ms + period_ms
        for voter in core.other_voters:
            progress = self.progress_of(voter)
            if progress is not None and progress.fetched_ms + period_ms > core.now_ms:
                continue
            if core.is_ready(voter.key.node_id):
                request = _begin_request(core, voter.key)
                core.send(voter.key.node_id, voter.address(core.replica.listener), request, to=voter.key)
            else:
                next_ms = min(next_ms, core.connections.ready_ms(voter.key.node_id, core.now_ms))
        self._begin_ms = next_ms
        core.wake(self._begin_ms)

    def _successors(self) -> list[ReplicaKey]:
        others = self._core.other_voters
        return [voter.key for voter in sorted(others, key=lambda voter: -self._offset_of(voter))]

    # Replicas

    def progress_of(self, voter: VoterNode) -> FetchProgress | None:
        """Returns the progress of a voter. A static voter may have any directory: the last one that fetched counts."""
        if voter.key.directory_id != NO_UUID:
            return self._progress.get(voter.key)
        return max(
            (progress for key, progress in self._progress.items() if voter.is_key(key)),
            key=lambda progress: progress.fetched_ms,
            default=None,
        )

    def is_caught_up(self, key: ReplicaKey) -> bool:
        """True if a replica has had all records, and fetches."""
        progress = self._progress.get(key)
        return (
            progress is not None
            and progress.caught_up_ms != UNKNOWN_MS
            and progress.fetched_ms > self._core.now_ms - CAUGHT_UP_MS
        )

    def fetched(self, key: ReplicaKey, offset: int) -> None:
        """Counts a replica's Fetch from an offset: it has every record before it."""
        core = self._core
        now_ms, end_offset = core.now_ms, core.log.end_offset
        progress = self._progress.pop(key, None) or FetchProgress(offset, now_ms)
        if offset >= end_offset:
            progress.caught_up_ms = now_ms
        elif 0 < progress.leader_end_offset <= offset:
            progress.caught_up_ms = max(progress.fetched_ms, progress.caught_up_ms)
        progress.end_offset, progress.fetched_ms, progress.leader_end_offset = offset, now_ms, end_offset
        self._progress[key] = progress
        if len(self._progress) > MAX_OBSERVERS:
            oldest = next((key for key in self._progress if not core.voters.is_voter(key)), key)
            del self._progress[oldest]
        self._count_fetch(key)
        if core.voters.is_voter(key):
            self.commit()

    def fetched_snapshot(self, key: ReplicaKey) -> None:
        """Counts a replica's FetchSnapshot: the replica follows, but its end is unknown."""
        self._count_fetch(key)

    def describe(self) -> tuple[list[ReplicaProgress], list[ReplicaProgress]]:
        """Returns the progress of voters and of observers that have fetched within SESSION_MS."""
        core, now_ms = self._core, self._core.now_ms
        own = core.replica.key
        voters = []
        for voter in core.voters:
            if voter.is_key(own):
                voters.append(ReplicaProgress(voter.key, core.log.end_offset, now_ms, now_ms, core.log.end_offset))
            else:
                progress = self.progress_of(voter)
                voters.append(
                    ReplicaProgress(voter.key, NO_OFFSET, UNKNOWN_MS)
                    if progress is None
                    else _described(voter.key, progress)
                )
        observers = [
            _described(key, progress)
            for key, progress in self._progress.items()
            if not core.voters.is_voter(key) and now_ms - progress.fetched_ms < SESSION_MS
        ]
        return sorted(voters), sorted(observers)

    # Fetches that wait

    def delay(self, fetch: DelayedFetch) -> None:
        """Answers a Fetch later: when there is news, or at its deadline."""
        self._delayed.append(fetch)
        self._core.wake(fetch.deadline_ms)

    def forget(self, ticket: int) -> None:
        """Drops a Fetch that waits."""
        self._delayed = [held for held in self._delayed if held.ticket != ticket]

    def _answer_delayed(self) -> None:
        core, waiting = self._core, []
        delayed, self._delayed = self._delayed, []
        for held in delayed:
            position = held.request.topics[0].partitions[0]
            is_due = held.deadline_ms <= core.now_ms or core.log.end_offset > position.fetch_offset
            has_news = self.is_established and core.high_watermark > position.high_watermark
            if is_due or has_news:
                response, read = _fetch_response(core, held.request, held.version, held.listener)
                core.reply(held.ticket, response, read)
            else:
                core.wake(held.deadline_ms)
                waiting.append(held)
        self._delayed = waiting + self._delayed


def own_voter(core: Core) -> VoterNode:
    """Returns this node as a voter."""
    replica = core.replica
    endpoints = tuple(Endpoint(endpoint.name, endpoint.host, endpoint.port) for endpoint in replica.endpoints)
    return VoterNode(replica.key, endpoints, replica.kraft_versions)


def is_same_voter(listed: VoterNode, voter: VoterNode) -> bool:
    """True if a voter set has the right data of a voter."""
    return (
        listed.key == voter.key
        and listed.kraft_versions == voter.kraft_versions
        and _addresses(listed) == _addresses(voter)
    )


def _addresses(voter: VoterNode) -> set[tuple[str, str, int]]:
    return {(endpoint.name.upper(), endpoint.host, endpoint.port) for endpoint in voter.endpoints}


def _described(key: ReplicaKey, progress: FetchProgress) -> ReplicaProgress:
    return ReplicaProgress(
        key, progress.end_offset, progress.fetched_ms, progress.caught_up_ms, progress.leader_end_offset
    )


def _begin_request(core: Core, to: ReplicaKey) -> BeginQuorumEpochRequest:
    partition = begin.PartitionData(
        partition_index=0,
        voter_directory_id=to.directory_id,
        leader_id=core.replica.key.node_id,
        leader_epoch=core.epoch,
    )
    return BeginQuorumEpochRequest(
        cluster_id=core.replica.cluster_id,
        voter_id=to.node_id,
        topics=[begin.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=[
            begin.LeaderEndpoint(name=endpoint.name, host=endpoint.host, port=endpoint.port)
            for endpoint in core.replica.endpoints
        ],
    )


# Fetch


def answer_fetch(core: Core, request: FetchRequest, version: int, listener: str, ticket: int) -> None:
    """Answers a replica's Fetch, or delays it until there is news."""
    code = core.error_of_cluster(request.cluster_id)
    position = _only_partition(request)
    if position is None and not code:
        code = ErrorCode.INVALID_REQUEST
    if code or position is None:
        core.reply(ticket, FetchResponse(error_code=code, responses=[]))
        return
    response, read = _fetch_response(core, request, version, listener, counts=True)
    data = response.responses[0].partitions[0]
    has_news = (
        data.error_code
        or read is not None
        or data.diverging_epoch.epoch >= 0
        or data.snapshot_id.end_offset >= 0
        or data.high_watermark > position.high_watermark
    )
    if has_news or request.max_wait_ms == 0 or not isinstance(core.state, LeaderState):
        core.reply(ticket, response, read)
    else:
        core.state.delay(DelayedFetch(ticket, request, version, listener, core.now_ms + request.max_wait_ms))


def _only_partition(request: FetchRequest) -> fetch.FetchPartition | None:
    """Returns the metadata partition, if the request is only for it."""
    topics = request.topics
    if len(topics) != 1 or (topics[0].topic_id != TOPIC_ID and topics[0].topic != METADATA_TOPIC):
        return None
    partitions = topics[0].partitions
    return partitions[0] if len(partitions) == 1 and partitions[0].partition == 0 else None


def _fetch_response(
    core: Core, request: FetchRequest, version: int, listener: str, *, counts: bool = False
) -> tuple[FetchResponse, ReadRecords | None]:
    """Returns the response, and the records to read into it. `counts` is True when the request arrives: it is then
    the replica's progress."""
    position = request.topics[0].partitions[0]
    node_id = request.replica_state.replica_id if version >= FIRST_REPLICA_STATE else request.replica_id
    key = ReplicaKey(node_id, position.replica_directory_id)
    data = _fetch_data(core, ErrorCode.NONE)
    read = None
    if (
        request.max_wait_ms < 0
        or position.fetch_offset < 0
        or not 0 <= position.last_fetched_epoch <= position.current_leader_epoch
    ):
        data.error_code = ErrorCode.INVALID_REQUEST
    elif code := core.error_of_epoch(position.current_leader_epoch):
        data.error_code = code
    elif key.node_id == core.replica.key.node_id:
        data.error_code = ErrorCode.UNKNOWN_SERVER_ERROR  # another process has this node's id: no better code
    else:
        read = _fetched(core, key, request.max_bytes, position, data, counts=counts)
    if data.error_code:
        data.high_watermark = NO_OFFSET
    topic = fetch.FetchableTopicResponse(topic=METADATA_TOPIC, topic_id=TOPIC_ID, partitions=[data])
    endpoints = []
    endpoint = core.leader_endpoint(listener)
    if version >= FIRST_FETCH_ENDPOINTS and endpoint is not None:
        endpoints.append(fetch.NodeEndpoint(node_id=core.leader_id, host=endpoint.host, port=endpoint.port))
    return FetchResponse(error_code=ErrorCode.NONE, responses=[topic], node_endpoints=endpoints), read


def _fetch_data(core: Core, code: ErrorCode) -> fetch.PartitionData:
    is_established = isinstance(core.state, LeaderState) and core.state.is_established
    return fetch.PartitionData(
        partition_index=0,
        error_code=code,
        high_watermark=core.high_watermark if is_established else NO_OFFSET,
        log_start_offset=core.log.start_offset,
        current_leader=fetch.LeaderIdAndEpoch(leader_id=core.leader_id, leader_epoch=core.epoch),
        records=b"",
    )


def _fetched(
    core: Core,
    key: ReplicaKey,
    max_bytes: int,
    position: fetch.FetchPartition,
    data: fetch.PartitionData,
    *,
    counts: bool,
) -> ReadRecords | None:
    assert isinstance(core.state, LeaderState)
    offset = position.fetch_offset
    problem = core.log.check(offset, position.last_fetched_epoch)
    if isinstance(problem, SnapshotId):
        data.snapshot_id = fetch.SnapshotId(end_offset=problem.offset, epoch=problem.epoch)
        return None
    if isinstance(problem, Diverging):
        data.diverging_epoch = fetch.EpochEndOffset(epoch=problem.end.epoch, end_offset=problem.end.offset)
        return None
    if counts and key.node_id >= 0:
        core.state.fetched(key, offset)
        if core.state.is_established:
            data.high_watermark = core.high_watermark
    if offset >= core.log.end_offset:
        return None
    return ReadRecords(offset, min(max(max_bytes, 0), position_bytes(position), MAX_FETCH_BYTES))


def position_bytes(position: fetch.FetchPartition) -> int:
    """Returns the partition's limit of bytes; Kafka's replicas of old versions send 0, which is no limit."""
    return position.partition_max_bytes if position.partition_max_bytes > 0 else MAX_FETCH_BYTES


# FetchSnapshot


def answer_fetch_snapshot(core: Core, request: FetchSnapshotRequest, version: int, listener: str, ticket: int) -> None:
    """Answers a replica that fetches a snapshot: the caller reads the piece."""
    code = core.error_of_cluster(request.cluster_id)
    if not code and (len(request.topics) != 1 or len(request.topics[0].partitions) != 1):
        code = ErrorCode.INVALID_REQUEST
    if code:
        core.reply(ticket, FetchSnapshotResponse(error_code=code, topics=[]))
        return
    (topic,) = request.topics
    (requested,) = topic.partitions
    snapshot_id = SnapshotId(requested.snapshot_id.end_offset, requested.snapshot_id.epoch)
    data = fetch_snapshot.ResponsePartitionSnapshot(
        index=requested.partition,
        error_code=ErrorCode.NONE,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=0, epoch=0),
        size=0,
        position=0,
        unaligned_records=b"",
    )
    wish: PieceWish | None = None
    if (topic.name, requested.partition) != (METADATA_TOPIC, 0):
        data.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        data.current_leader = fetch_snapshot.LeaderIdAndEpoch(leader_id=core.leader_id, leader_epoch=core.epoch)
        data.error_code = core.error_of_epoch(requested.current_leader_epoch)
        if not data.error_code and (snapshot_id == BOOTSTRAP_SNAPSHOT or snapshot_id not in core.log.snapshots):
            data.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
        if not data.error_code and isinstance(core.state, LeaderState):
            data.snapshot_id, data.position = requested.snapshot_id, requested.position
            core.state.fetched_snapshot(ReplicaKey(request.replica_id, requested.replica_directory_id))
            wish = PieceWish(snapshot_id, requested.position, min(max(request.max_bytes, 1), MAX_FETCH_BYTES))
    response = FetchSnapshotResponse(
        error_code=ErrorCode.NONE,
        topics=[fetch_snapshot.ResponseTopicSnapshot(name=topic.name, partitions=[data])],
        node_endpoints=[],
    )
    endpoint = core.leader_endpoint(listener)
    if version >= FIRST_SNAPSHOT_ENDPOINTS and endpoint is not None:
        response.node_endpoints.append(
            fetch_snapshot.NodeEndpoint(node_id=core.leader_id, host=endpoint.host, port=endpoint.port)
        )
    core.reply(ticket, response, wish)


def fill_piece(response: FetchSnapshotResponse, piece: SnapshotPiece | None) -> None:
    """Sets the piece that the caller has read, or the error of a position outside of the snapshot; None if the snapshot
    is gone."""
    data = response.topics[0].partitions[0]
    if piece is None:
        data.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
    elif not 0 <= data.position < piece.size_bytes:
        data.error_code = ErrorCode.POSITION_OUT_OF_RANGE
    else:
        data.size, data.unaligned_records = piece.size_bytes, piece.content


def propose(core: Core, batch: bytearray) -> int:
    """Appends a batch as the leader. Raises KafkaError(NOT_LEADER_OR_FOLLOWER)."""
    if not isinstance(core.state, LeaderState) or core.state.is_resigning:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return core.state.append(batch)
