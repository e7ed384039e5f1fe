"""The steps of a migration of a group's offsets between ZooKeeper and Kafka. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from protocol.types import TopicPartition


class MigrationStep(NamedTuple):
    """One partition of a migration: its offsets in the source and in the target, and the action."""

    partition: TopicPartition
    source: int | None
    target: int | None
    action: str

    @property
    def writes(self) -> bool:
        return self.action in (COPY, ADVANCE)


COPY, ADVANCE, SAME, AHEAD, NOTHING, GONE = "copy", "advance", "same", "target is ahead", "target only", "no partition"


def plan(
    source: Mapping[TopicPartition, int], target: Mapping[TopicPartition, int], existing: Collection[TopicPartition]
) -> list[MigrationStep]:
    """Returns the steps of a migration. The larger offset wins, as for a consumer with dual.commit.enabled: an
    interrupted or repeated migration continues, and never moves a group back."""
    return [
        MigrationStep(
            partition,
            source.get(partition),
            target.get(partition),
            _action(source.get(partition), target.get(partition), partition in existing),
        )
        for partition in sorted({*source, *target})
    ]


def _action(source: int | None, target: int | None, is_there: bool) -> str:
    if not is_there:
        return GONE
    if source is None:
        return NOTHING
    if target is None:
        return COPY
    return SAME if source == target else ADVANCE if source > target else AHEAD
