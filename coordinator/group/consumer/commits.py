"""Checks commits and offset fetches in a consumer group: the member's epoch must not be outdated.

A commit with an older epoch is valid for partitions that the member has had since that epoch: the rebalance that came
meanwhile changed others. Source: ConsumerGroup.validateOffsetCommit (KIP-848, KIP-1251).
"""

from __future__ import annotations

from typing import Final

from coordinator.group.consumer.member import Member
from coordinator.group.group import CommitCheck, any_partition
from protocol.errors import ErrorCode, KafkaError
from protocol.types import Uuid

FIRST_VERSION_WITH_EPOCHS: Final = 9
"""OffsetCommit's first version whose clients support the errors of the consumer protocol."""


def commit_check(member: Member, epoch: int, version: int, *, transactional: bool) -> CommitCheck:
    """Returns the check of each partition in a commit. Raises UNSUPPORTED_VERSION, or an error if the epoch is newer
    than the member's."""
    if not transactional and not member.uses_classic_protocol and version < FIRST_VERSION_WITH_EPOCHS:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the consumer group protocol",
        )
    if epoch == member.member_epoch:
        return any_partition
    if epoch > member.member_epoch:
        raise stale(
            member, f"Received {_epoch(member)} {epoch} is newer than current member epoch {member.member_epoch}."
        )

    def since(topic: str, topic_id: Uuid, partition: int) -> None:
        given_at = member.assignment_epoch(topic_id, partition)
        if given_at is None:
            raise stale(member, f"Partition {topic}-{partition} is not assigned or pending revocation for member.")
        if epoch < given_at:
            raise stale(
                member,
                f"Received {_epoch(member)} {epoch} is older than assignment epoch {given_at} "
                f"for partition {topic}-{partition}.",
            )

    return since


def check_epoch(member: Member, epoch: int) -> None:
    """Raises unless the epoch is the member's present epoch."""
    if epoch != member.member_epoch:
        raise stale(
            member,
            f"The received {_epoch(member)} {epoch} does not match the expected member epoch {member.member_epoch}.",
        )


def stale(member: Member, message: str) -> KafkaError:
    """Returns the error for a wrong epoch in the member's protocol."""
    code = ErrorCode.ILLEGAL_GENERATION if member.uses_classic_protocol else ErrorCode.STALE_MEMBER_EPOCH
    return KafkaError(code, message)


def _epoch(member: Member) -> str:
    return "generation id" if member.uses_classic_protocol else "member epoch"
