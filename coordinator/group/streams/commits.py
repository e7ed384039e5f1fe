"""Checks commits and offset fetches in a streams group: the member's epoch must not be outdated.

A commit with an older epoch is valid for partitions of active tasks that the member has had since that epoch. Source:
StreamsGroup.validateOffsetCommit (KIP-1071, KIP-1251).
"""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.group.consumer.commits import FIRST_VERSION_WITH_EPOCHS
from coordinator.group.group import CommitCheck, any_partition
from coordinator.group.streams.member import StreamsMember
from coordinator.group.streams.tasks import TaskId
from protocol.errors import ErrorCode, KafkaError
from protocol.types import Uuid


def commit_check(
    subtopologies: Mapping[str, str] | None, member: StreamsMember, epoch: int, version: int, *, transactional: bool
) -> CommitCheck:
    """Returns the check of each partition in a commit. `subtopologies` has the subtopology of each topic; it is None if
    the group has no topology. Raises UNSUPPORTED_VERSION, STALE_MEMBER_EPOCH."""
    if not transactional and version < FIRST_VERSION_WITH_EPOCHS:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the streams group protocol",
        )
    if epoch == member.member_epoch:
        return any_partition
    if epoch > member.member_epoch:
        raise _stale(f"Received member epoch {epoch} is newer than current member epoch {member.member_epoch}.")
    if subtopologies is None:
        raise _stale("Topology is not available for offset commit validation.")

    def since(topic: str, _topic_id: Uuid, partition: int) -> None:
        subtopology_id = subtopologies.get(topic)
        if subtopology_id is None:
            raise _stale(f"Topic {topic} is not in the topology.")
        task = TaskId(subtopology_id, partition)
        given_at = member.assigned.active.get(task, member.pending_revocation.active.get(task))
        if given_at is None:
            raise _stale(f"Task {subtopology_id}-{partition} is not assigned or pending revocation for member.")
        if epoch < given_at:
            raise _stale(
                f"Received member epoch {epoch} is older than assignment epoch {given_at} "
                f"for task {subtopology_id}-{partition}."
            )

    return since


def check_epoch(member: StreamsMember, epoch: int) -> None:
    """Raises STALE_MEMBER_EPOCH unless the epoch is the member's present epoch."""
    if epoch != member.member_epoch:
        raise _stale(
            f"The received member epoch {epoch} does not match the expected member epoch {member.member_epoch}."
        )


def _stale(message: str) -> KafkaError:
    return KafkaError(ErrorCode.STALE_MEMBER_EPOCH, message)
