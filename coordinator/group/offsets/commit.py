"""OffsetCommit: stores the offsets of a member, or of a consumer without group management.

Source: OffsetMetadataManager.commitOffset (KIP-211 for retention, KIP-848 and KIP-1251 for epochs).
"""

from __future__ import annotations

from functools import partial
from typing import Final

from coordinator.engine.result import Effect, Reply, Result, Ticket, answered
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.rebalance import watch
from coordinator.group.classic.rendezvous import PREPARING_REBALANCE, STABLE
from coordinator.group.group import CommitCheck, Group, any_partition
from coordinator.group.records import NO_TIMESTAMP, AnyRecord, GroupResult, committed, offset_commit
from coordinator.group.state import Client, GroupState
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from protocol.types import NO_UUID, Uuid

NO_RETENTION_MS = -1
"""The retention time of a commit whose offsets expire by offsets.retention.minutes."""

MAX_TIME_MS: Final = (1 << 63) - 1

FIRST_GROUP_ID_NOT_FOUND_VERSION: Final = 9

FIRST_EPOCHS_VERSION: Final = 6
"""First version of TxnOffsetCommit whose producers understand STALE_MEMBER_EPOCH and GROUP_ID_NOT_FOUND (KIP-1319)."""


def commit(
    state: GroupState, request: OffsetCommitRequest, client: Client, ticket: Ticket[OffsetCommitResponse], now_ms: int
) -> GroupResult:
    """Commits offsets of existing topics, with an answer for each partition. Raises KafkaError to reject all."""
    check, effects = _check_member(state, request, client.version, now_ms)
    max_metadata_bytes = state.settings.offset_metadata_max_bytes
    expires_ms = _expiry_ms(request.retention_time_ms, now_ms)
    records: list[AnyRecord] = []
    topics = []
    for topic in request.topics:
        answers = []
        for partition in topic.partitions:
            code = _too_large(partition.committed_metadata, max_metadata_bytes)
            if not code:
                if check is not any_partition:
                    check(topic.name, topic.topic_id, partition.partition_index)
                value = committed(
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.committed_metadata or "",
                    _commit_timestamp(partition, now_ms),
                    expires_ms,
                    topic.topic_id,
                )
                records.append(offset_commit(request.group_id, topic.name, partition.partition_index, value))
            answers.append(OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code))
        topics.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=answers))
    return Result(records, (Reply(ticket, OffsetCommitResponse(topics=topics)),), effects)


def _expiry_ms(retention_ms: int, now_ms: int) -> int:
    """Returns the time until which the client wants the offsets retained, at most the largest time."""
    return NO_TIMESTAMP if retention_ms == NO_RETENTION_MS else min(now_ms + retention_ms, MAX_TIME_MS)


def _check_member(
    state: GroupState, request: OffsetCommitRequest, version: int, now_ms: int
) -> tuple[CommitCheck, tuple[Effect, ...]]:
    """Returns the check of each partition, if the client may commit; a commit extends a classic member's session."""
    epoch = request.generation_id_or_member_epoch
    group = state.groups.get(request.group_id)
    if group is None:
        if epoch < 0:
            return any_partition, ()  # the record makes a simple group
        raise KafkaError(_unknown_group(version))
    check = group.check_offset_commit(request.member_id, request.group_instance_id, epoch, version, transactional=False)
    if isinstance(group, ClassicGroup) and group.state in (STABLE, PREPARING_REBALANCE):
        deadline_ms = now_ms + group.members[request.member_id].session_timeout_ms
        return check, (partial(watch, state, group.group_id, request.member_id, deadline_ms),)
    return check, ()


def _unknown_group(version: int) -> ErrorCode:
    """Returns the error for a member of a group that does not exist."""
    knows_not_found = version >= FIRST_GROUP_ID_NOT_FOUND_VERSION
    return ErrorCode.GROUP_ID_NOT_FOUND if knows_not_found else ErrorCode.ILLEGAL_GENERATION


def _too_large(metadata: str | None, max_size: int) -> int:
    """Returns OFFSET_METADATA_TOO_LARGE, or no error. Kafka counts UTF-16 code units."""
    if metadata is None or len(metadata) <= max_size // 2:
        return 0
    size = len(metadata) if metadata.isascii() else len(metadata.encode("utf-16-le", "surrogatepass")) // 2
    return ErrorCode.OFFSET_METADATA_TOO_LARGE if size > max_size else 0


def _commit_timestamp(partition: OffsetCommitRequestPartition, now_ms: int) -> int:
    """Returns the time of the commit, which only version 1 lets the client set."""
    return now_ms if partition.commit_timestamp == NO_TIMESTAMP else partition.commit_timestamp


def commit_transactional(
    state: GroupState,
    request: TxnOffsetCommitRequest,
    client: Client,
    ticket: Ticket[TxnOffsetCommitResponse],
    now_ms: int,
) -> GroupResult:
    """Commits offsets that stay pending until their producer's transaction ends: TxnOffsetCommit (KIP-98, KIP-447)."""
    check = _check_transactional(state, request, client.version)
    max_metadata_bytes = state.settings.offset_metadata_max_bytes
    records: list[AnyRecord] = []
    topics = []
    for topic in request.topics:
        topic_id = _topic_id(state, topic.name)
        answers = []
        for partition in topic.partitions:
            code = _too_large(partition.committed_metadata, max_metadata_bytes)
            if not code:
                _check_partition(check, topic.name, topic_id, partition.partition_index, client.version)
                records.append(_pending(request, topic.name, partition, now_ms))
            answers.append(TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code))
        topics.append(TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=answers))
    return answered(ticket, TxnOffsetCommitResponse(topics=topics), records)


def _pending(
    request: TxnOffsetCommitRequest, topic: str, partition: TxnOffsetCommitRequestPartition, now_ms: int
) -> AnyRecord:
    metadata = partition.committed_metadata or ""
    value = committed(partition.committed_offset, partition.committed_leader_epoch, metadata, now_ms)
    producer = request.producer_id, request.producer_epoch
    return offset_commit(request.group_id, topic, partition.partition_index, value, *producer)


def _check_transactional(state: GroupState, request: TxnOffsetCommitRequest, version: int) -> CommitCheck:
    epoch = request.generation_id_or_member_epoch
    group: Group | None = state.groups.get(request.group_id)
    if group is None:
        if epoch < 0:
            return any_partition
        knows_not_found = version >= FIRST_EPOCHS_VERSION
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND if knows_not_found else ErrorCode.ILLEGAL_GENERATION)
    try:
        return group.check_offset_commit(
            request.member_id, request.group_instance_id, epoch, version, transactional=True
        )
    except KafkaError as error:
        raise _for_producer(error, version) from None


def _check_partition(check: CommitCheck, topic: str, topic_id: Uuid, partition: int, version: int) -> None:
    try:
        check(topic, topic_id, partition)
    except KafkaError as error:
        raise _for_producer(error, version) from None


def _for_producer(error: KafkaError, version: int) -> KafkaError:
    """Returns the error as a producer expects it: before KIP-1319 it knows only generations."""
    is_new = error.code is ErrorCode.STALE_MEMBER_EPOCH and version < FIRST_EPOCHS_VERSION
    return KafkaError(ErrorCode.ILLEGAL_GENERATION) if is_new else error


def _topic_id(state: GroupState, name: str) -> Uuid:
    topic = state.environment.topics.topic(name)
    return NO_UUID if topic is None else topic.topic_id
