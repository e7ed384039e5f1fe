"""The follower's part of the raft core, and the search for a leader: Fetch and FetchSnapshot as a replica sends them.

Source: KafkaRaftClient.pollFollower, handleFetchResponse, handleFetchSnapshotResponse; KIP-595, KIP-630, KIP-1166.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.quorum import TOPIC_ID
from coordinator.cluster.snapshot import SnapshotId
from coordinator.cluster.topics.names import METADATA_TOPIC
from coordinator.quorum.connections import SentRequest
from coordinator.quorum.electing import answered_endpoints
from coordinator.quorum.leadership import Location
from coordinator.quorum.log_end import LogEnd
from coordinator.quorum.membership import send_voter_change
from coordinator.quorum.observer import NO_BROKER_EPOCH, BeginSnapshot, DropSnapshot, Fetching, WritePiece
from coordinator.quorum.ready import AdoptSnapshot, AppendBatches, TruncateTo
from coordinator.quorum.states import FollowerState
from coordinator.quorum.voter_set import ControlRecord
from protocol.errors import ErrorCode, KafkaError, ProtocolError, error_code
from protocol.messages import fetch, fetch_snapshot
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from protocol.records.batch import CONTROL, iter_batches, validate
from protocol.records.control import QuorumRecord, decode_quorum_record
from protocol.records.record import read_records
from protocol.types import Buffer

if TYPE_CHECKING:
    from coordinator.quorum.core import Core

UNKNOWN_OFFSET: Final = -1


# What is due


def poll_follower(core: Core, state: FollowerState) -> bool:
    """Does what is due. Returns True if the role has changed."""
    if core.may_elect:
        if core.now_ms >= state.fetch_ms:
            core.become_prospective()
            return True
        core.wake(state.fetch_ms)
        _ask_leader(core, state)
        return False
    leader, now_ms = core.leader_id, core.now_ms
    if now_ms >= state.fetch_ms or core.connections.is_paused(leader, now_ms):
        ask_any(core)
    else:
        core.wake(state.fetch_ms)
    if core.connections.bootstrap_deadline_ms(now_ms) <= now_ms:
        _ask_leader(core, state)
    return False


def _ask_leader(core: Core, state: FollowerState) -> None:
    """Sends the leader the next request, if no other is in flight."""
    if not core.is_ready(core.leader_id):
        return
    if send_voter_change(core, state):
        return
    if state.fetching is not None:
        core.send(core.leader_id, core.leader_address, _snapshot_request(core, state.fetching))
    else:
        _fetch_from(core, core.leader_id, core.leader_address)


def ask_any(core: Core) -> None:
    """Sends a Fetch to a controller in turn, which names the leader in its answer."""
    connections, now_ms = core.connections, core.now_ms
    busy_ms = max(connections.search_ms, connections.bootstrap_deadline_ms(now_ms))
    if busy_ms > now_ms:
        core.wake(busy_ms)
        return
    listener = core.replica.listener
    known = [(-1_000_000 - voter.key.node_id, voter.address(listener)) for voter in core.other_voters]
    addresses = dict.fromkeys(location for _, location in connections.bootstrap)
    nodes = [*connections.bootstrap, *((node, address) for node, address in known if address not in addresses)]
    ready = [(node, address) for node, address in nodes if connections.ready_ms(node, now_ms) <= now_ms]
    if ready:
        connections.search_ms = now_ms + core.config.retry_backoff_ms
        _fetch_from(core, *ready[core.random(len(ready))])
    elif nodes:
        core.wake(min(connections.ready_ms(node, now_ms) for node, _ in nodes))


def _fetch_from(core: Core, node_id: int, address: Location | None) -> None:
    """Sends a Fetch from the log's end, once a voter has flushed its log: the leader counts what is before. A full disk
    has no room for the answer."""
    if core.now_ms < core.full_until_ms:
        core.wake(core.full_until_ms)
        return
    if core.replica.can_vote and not core.rules.may_fetch(core.log.flushed_offset, core.log.end_offset):
        return
    core.send(node_id, address, _fetch_request(core))


def _fetch_request(core: Core) -> FetchRequest:
    end, config = core.log.end, core.config
    partition = fetch.FetchPartition(
        partition=0,
        current_leader_epoch=core.epoch,
        fetch_offset=end.offset,
        last_fetched_epoch=end.epoch,
        log_start_offset=UNKNOWN_OFFSET,
        partition_max_bytes=config.fetch_bytes,
        replica_directory_id=core.replica.key.directory_id,
        high_watermark=core.high_watermark,
    )
    return FetchRequest(
        cluster_id=core.replica.cluster_id,
        replica_state=fetch.ReplicaState(replica_id=core.replica.key.node_id, replica_epoch=NO_BROKER_EPOCH),
        max_wait_ms=config.fetch_max_wait_ms,
        min_bytes=0,
        max_bytes=config.fetch_bytes,
        topics=[fetch.FetchTopic(topic_id=TOPIC_ID, partitions=[partition])],
    )


def _snapshot_request(core: Core, fetching: Fetching) -> FetchSnapshotRequest:
    snapshot_id = fetching.snapshot_id
    partition = fetch_snapshot.PartitionSnapshot(
        partition=0,
        current_leader_epoch=core.epoch,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=snapshot_id.offset, epoch=snapshot_id.epoch),
        position=fetching.position,
        replica_directory_id=core.replica.key.directory_id,
    )
    return FetchSnapshotRequest(
        cluster_id=core.replica.cluster_id,
        replica_id=core.replica.key.node_id,
        max_bytes=core.config.snapshot_bytes,
        topics=[fetch_snapshot.TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])],
    )


# Answers


def fetch_answered(core: Core, sent: SentRequest, response: FetchResponse | ErrorCode) -> None:
    """Handles the answer to a Fetch, of the leader or of another controller."""
    if not isinstance(response, FetchResponse):
        _pause(core, sent)
        return
    partitions = [
        data
        for topic in response.responses
        for data in topic.partitions
        if topic.topic_id == TOPIC_ID or topic.topic == METADATA_TOPIC
    ]
    if response.error_code or len(partitions) != 1:
        _pause(core, sent, f"the answer to a Fetch is {error_code(response.error_code).name}")
        return
    (data,) = partitions
    current = data.current_leader
    endpoints = answered_endpoints(core, current.leader_id, response.node_endpoints)
    state = _follow(core, sent, data.error_code, current.leader_id, current.leader_epoch, endpoints)
    if state is None:
        return
    if (core.log.end_offset, core.log.generation) != (sent.offset, sent.generation):
        return  # the answer is for another end of the log
    if data.diverging_epoch.epoch >= 0:
        is_followed = _truncate(core, sent, data.diverging_epoch)
    elif data.snapshot_id.epoch >= 0 or data.snapshot_id.end_offset >= 0:
        snapshot_id = SnapshotId(data.snapshot_id.end_offset, data.snapshot_id.epoch)
        is_followed = _begin_snapshot(core, sent, state, snapshot_id)
    else:
        is_followed = _append(core, sent, data)
    if is_followed:
        _heard(core, state)


def _heard(core: Core, state: FollowerState) -> None:
    state.has_fetched = True
    state.fetch_ms = core.now_ms + core.config.fetch_timeout_ms


def _pause(core: Core, sent: SentRequest, problem: str = "") -> None:
    if problem:
        core.out.problems.append(problem)
    core.connections.pause(sent.node_id, core.now_ms + core.config.retry_backoff_ms)


def _follow(
    core: Core, sent: SentRequest, code: int, leader_id: int, epoch: int, endpoints: tuple[Endpoint, ...]
) -> FollowerState | None:
    """Learns the leader from an answer. Returns this node's state if the answer is from the leader that it follows."""
    before = core.epoch
    if code != ErrorCode.UNKNOWN_LEADER_EPOCH:
        core.learn_leader(leader_id, epoch, endpoints)
    state = core.state
    if code or epoch < before or core.epoch > before:
        if core.state is state and core.epoch == before:
            _pause(core, sent)
        return None
    if not isinstance(state, FollowerState) or leader_id != core.leader_id:
        _pause(core, sent)
        return None
    return state


def _truncate(core: Core, sent: SentRequest, diverging: fetch.EpochEndOffset) -> bool:
    offset = core.log.truncation_point(LogEnd(diverging.end_offset, diverging.epoch))
    if not core.rules.may_truncate(offset, core.high_watermark):
        _pause(
            core,
            sent,
            f"the leader's log diverges at offset {offset}, but all records before {core.high_watermark} are committed",
        )
        return False
    if offset >= core.log.end_offset:
        _pause(core, sent, f"the leader's log diverges at offset {offset}, but this log ends there")
        return False
    core.log.truncate(offset)
    core.history.truncate(offset)
    core.out.writes.append(TruncateTo(offset))
    return True


def _begin_snapshot(core: Core, sent: SentRequest, state: FollowerState, snapshot_id: SnapshotId) -> bool:
    if min(snapshot_id) < 0 or not core.rules.adopts(snapshot_id, core.high_watermark):
        _pause(
            core,
            sent,
            f"the leader offers the snapshot {snapshot_id}, but all records before {core.high_watermark} are committed",
        )
        return False
    state.fetching = Fetching(snapshot_id, 0, core.epoch)
    core.out.writes.append(BeginSnapshot(snapshot_id))
    return True


def _append(core: Core, sent: SentRequest, data: fetch.PartitionData) -> bool:
    records = memoryview(data.records or b"")
    try:
        epochs, control, next_offset, size_bytes = _checked(core, records)
    except (KafkaError, ProtocolError) as error:
        _pause(core, sent, f"the leader's records are rejected: {error}")
        return False
    if len(records) and not size_bytes:
        _pause(core, sent, f"the leader sends {len(records)} bytes without a whole batch")
        return False
    if size_bytes:
        base_offset = core.log.end_offset
        core.log.append(epochs, next_offset)
        core.history.add(control)
        core.out.writes.append(
            AppendBatches(records[:size_bytes], base_offset, next_offset, core.epoch, tuple(control))
        )
    high_watermark = min(data.high_watermark, core.log.end_offset)
    if high_watermark > core.high_watermark:
        core.high_watermark = core.out.high_watermark = high_watermark
    return True


def _checked(core: Core, records: memoryview) -> tuple[list[LogEnd], list[ControlRecord], int, int]:
    """Returns the epochs, control records, end offset and size of the whole batches. Raises KafkaError and
    ProtocolError for damaged batches, gaps, and impossible epochs."""
    offset, epoch = core.log.end
    epochs: list[LogEnd] = []
    control: list[ControlRecord] = []
    size_bytes = 0
    for position, header in iter_batches(records):
        validate(records, position, header)
        if header.base_offset != offset or header.last_offset < offset:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"a batch begins at offset {header.base_offset}, but the next offset is {offset}",
            )
        if not core.rules.accepts(epoch, header.partition_leader_epoch, core.epoch):
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"the batch at offset {offset} has epoch {header.partition_leader_epoch}, which is not between the "
                f"previous batch's {epoch} and the leader's {core.epoch}",
            )
        if header.partition_leader_epoch != epoch:
            epochs.append(LogEnd(offset, header.partition_leader_epoch))
        if header.attributes & CONTROL:
            control += control_records(records, position)
        offset, epoch = header.next_offset, header.partition_leader_epoch
        size_bytes = position + 12 + header.batch_length
    return epochs, control, offset, size_bytes


def control_records(data: Buffer, position: int) -> list[ControlRecord]:
    """Returns the control records of KRaft in a control batch. Raises KafkaError and ProtocolError."""
    header = next(iter_batches(data, position))[1]
    found: list[ControlRecord] = []
    for record in read_records(data, position, header):
        decoded: QuorumRecord | None = decode_quorum_record(record)
        if decoded is not None:
            found.append(ControlRecord(record.offset, decoded))
    return found


def snapshot_answered(core: Core, sent: SentRequest, response: FetchSnapshotResponse | ErrorCode) -> None:
    """Handles the answer to a FetchSnapshot."""
    if not isinstance(response, FetchSnapshotResponse):
        _pause(core, sent)
        return
    partitions = [data for topic in response.topics for data in topic.partitions if topic.name == METADATA_TOPIC]
    if response.error_code or len(partitions) != 1:
        _pause(core, sent, f"the answer to a FetchSnapshot is {error_code(response.error_code).name}")
        return
    (data,) = partitions
    current = data.current_leader
    state = core.state
    gone = (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE)
    is_own = (
        isinstance(state, FollowerState) and current.leader_epoch == core.epoch and current.leader_id == core.leader_id
    )
    if data.error_code in gone and is_own:
        drop_snapshot(core)
        return
    endpoints = answered_endpoints(core, current.leader_id, response.node_endpoints)
    following = _follow(core, sent, data.error_code, current.leader_id, current.leader_epoch, endpoints)
    if following is not None and following.fetching is not None:
        _write_piece(core, sent, following, following.fetching, data)


def drop_snapshot(core: Core) -> None:
    """Gives up a snapshot that is being fetched; the next Fetch begins it again."""
    state = core.state
    if isinstance(state, FollowerState) and state.fetching is not None:
        core.out.writes.append(DropSnapshot(state.fetching.snapshot_id))
        state.fetching = None


def _write_piece(
    core: Core,
    sent: SentRequest,
    state: FollowerState,
    fetching: Fetching,
    data: fetch_snapshot.ResponsePartitionSnapshot,
) -> None:
    content = memoryview(data.unaligned_records)
    end = fetching.position + len(content)
    answered = SnapshotId(data.snapshot_id.end_offset, data.snapshot_id.epoch)
    is_expected = answered == fetching.snapshot_id and data.position == fetching.position
    if not is_expected or end > data.size or not content:
        drop_snapshot(core)
        _pause(core, sent, f"{len(content)} bytes at {data.position} of {answered} of {data.size} bytes")
        return
    is_last = end == data.size
    core.out.writes.append(WritePiece(fetching.snapshot_id, fetching.position, content, is_last))
    state.fetching = None if is_last else fetching._replace(position=end)
    _heard(core, state)
    if is_last:
        core.out.writes.append(AdoptSnapshot(fetching.snapshot_id))


def adopted(core: Core, snapshot_id: SnapshotId, records: Sequence[QuorumRecord]) -> None:
    """Continues after the snapshot, by which the log was replaced."""
    core.log.replace(snapshot_id)
    core.history.clear()
    core.history.add([ControlRecord(snapshot_id.offset - 1, record) for record in records])
    if snapshot_id.offset > core.high_watermark:
        core.high_watermark = core.out.high_watermark = snapshot_id.offset
