"""Builds requests of groups from plain values: topics by name, offsets by partition, strategies by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from protocol.types import NO_UUID, Uuid

Offsets = Mapping[str, Mapping[int, int]]
"""Offsets by topic and partition."""

Ids = Mapping[str, Uuid]
"""Topic ids by name."""


def join_group(
    group: str,
    member_id: str = "",
    strategies: Iterable[str] = ("range",),
    metadata: bytes = b"",
    *,
    session_ms: int = 10_000,
    rebalance_ms: int = 30_000,
    protocol_type: str = "consumer",
    **fields: Any,
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        protocol_type=protocol_type,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name in strategies],
        **fields,
    )


def sync_group(
    group: str, member_id: str, generation: int, assignments: Mapping[str, bytes] | None = None, **fields: Any
) -> SyncGroupRequest:
    """Returns a SyncGroup request. `assignments` are the leader's, by member id."""
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        assignments=[
            SyncGroupRequestAssignment(member_id=owner, assignment=assignment)
            for owner, assignment in (assignments or {}).items()
        ],
        **fields,
    )


def offset_commit(
    group: str, offsets: Offsets, *, metadata: str | None = "", ids: Ids | None = None, **fields: Any
) -> OffsetCommitRequest:
    topics = [
        OffsetCommitRequestTopic(
            name=name,
            topic_id=(ids or {}).get(name, NO_UUID),
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=index, committed_offset=offset, committed_metadata=metadata
                )
                for index, offset in partitions.items()
            ],
        )
        for name, partitions in offsets.items()
    ]
    return OffsetCommitRequest(group_id=group, topics=topics, **fields)


def txn_offset_commit(
    group: str,
    transactional_id: str,
    producer: tuple[int, int],
    offsets: Offsets,
    *,
    metadata: str = "",
    ids: Ids | None = None,
    **fields: Any,
) -> TxnOffsetCommitRequest:
    """Returns a TxnOffsetCommit request. `producer` is the producer's id and epoch."""
    topics = [
        TxnOffsetCommitRequestTopic(
            name=name,
            topic_id=(ids or {}).get(name, NO_UUID),
            partitions=[
                TxnOffsetCommitRequestPartition(
                    partition_index=index, committed_offset=offset, committed_metadata=metadata
                )
                for index, offset in partitions.items()
            ],
        )
        for name, partitions in offsets.items()
    ]
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group,
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=topics,
        **fields,
    )


def offset_fetch(
    group: str,
    topics: Mapping[str, Iterable[int]] | None = None,
    *,
    stable: bool = False,
    ids: Ids | None = None,
) -> OffsetFetchRequest:
    """Returns an OffsetFetch request of version 8 or later. Without `topics` it requests all offsets of the group."""
    return OffsetFetchRequest(groups=[fetched_group(group, topics, ids=ids)], require_stable=stable)


def fetched_group(
    group: str, topics: Mapping[str, Iterable[int]] | None = None, *, ids: Ids | None = None, **fields: Any
) -> OffsetFetchRequestGroup:
    """Returns a group of an OffsetFetch request."""
    requested = (
        None
        if topics is None
        else [
            OffsetFetchRequestTopics(
                name=name, topic_id=(ids or {}).get(name, NO_UUID), partition_indexes=list(indexes)
            )
            for name, indexes in topics.items()
        ]
    )
    return OffsetFetchRequestGroup(group_id=group, topics=requested, **fields)
