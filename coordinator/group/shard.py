"""The group coordinator's shard: one per partition of `__consumer_offsets`, with all groups whose ids hash to it.

This module only has the tables that each protocol adds to, such as the functions that apply records. Decisions are
functions in other modules, (state, request, …, ticket, now_ms) → Result, and go through the engine as

    engine.submit(partition, lambda ticket, now_ms: heartbeat(shard.state, request, client, ticket, now_ms))

Source: GroupCoordinatorShard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from coordinator.engine.result import Reply, Result, Ticket, answered
from coordinator.group.classic import replay as classic_replay
from coordinator.group.consumer import fencing as consumer_fencing
from coordinator.group.consumer import replay as consumer_replay
from coordinator.group.offsets import delete as offset_delete
from coordinator.group.offsets import replay as offsets_replay
from coordinator.group.records import AnyRecord, EndTransaction, GroupResult
from coordinator.group.share import initialization as share_initialization
from coordinator.group.share import replay as share_replay
from coordinator.group.share import sessions as share_sessions
from coordinator.group.state import Apply, GroupEnvironment, GroupState
from coordinator.group.streams import fencing as streams_fencing
from coordinator.group.streams import replay as streams_replay
from protocol.types import Uuid

Activate = Callable[[GroupState, int], None]
"""(state, now_ms): sets the timers of a protocol's groups after loading."""

TopicsDeleted = Callable[[GroupState, Mapping[str, Uuid], int], GroupResult]
"""(state, ids of the topics by name, now_ms) → Result: updates a protocol's groups after topics are deleted."""

APPLY: Mapping[type, Apply] = {
    **offsets_replay.APPLY,
    **classic_replay.APPLY,
    **consumer_replay.APPLY,
    **share_replay.APPLY,
    **streams_replay.APPLY,
}
"""The replay functions, by the class of a record's key."""

ACTIVATE: tuple[Activate, ...] = (
    offset_delete.activate,
    classic_replay.activate,
    consumer_fencing.activate,
    share_sessions.activate,
    streams_fencing.activate,
)

TOPICS_DELETED: tuple[TopicsDeleted, ...] = (offset_delete.topics_deleted, share_initialization.topics_deleted)


class GroupShard:
    """`coordinator.engine.machine.Machine` of groups. Records of unknown types are ignored, and stay in the log."""

    def __init__(self, environment: GroupEnvironment) -> None:
        self.state = GroupState(environment)

    def apply(self, record: AnyRecord) -> None:
        """Applies a record; no other method changes durable state."""
        apply = APPLY.get(type(record.key))
        if apply is not None:
            apply(self.state, record)

    def activate(self, now_ms: int) -> None:
        """Sets the timers after all records are loaded."""
        for activate in ACTIVATE:
            activate(self.state, now_ms)

    def topics_deleted(self, topics: Mapping[str, Uuid], ticket: Ticket[None], now_ms: int) -> GroupResult:
        """Updates the groups after topics are deleted (names with their ids); a decision of the broker's own, whose
        ticket has no answer."""
        results = [topics_deleted(self.state, topics, now_ms) for topics_deleted in TOPICS_DELETED]
        records = [record for result in results for record in result.records]
        effects = [effect for result in results for effect in result.effects]
        return Result(records, (Reply(ticket, None),), effects)

    def end_transaction(self, marker: EndTransaction, ticket: Ticket[None], now_ms: int) -> GroupResult:
        """Commits or drops a producer's pending offsets."""
        return answered(ticket, None, (marker,))

    def expire(self, now_ms: int) -> GroupResult:
        """Decides on the first timer that is due."""
        return self.state.timers.expire(now_ms)

    def next_deadline_ms(self) -> int | None:
        return self.state.timers.next_deadline_ms()

    def expire_failed(self, error: Exception, now_ms: int) -> int:
        """Postpones the timer that failed; all others keep their times."""
        self.state.timers.failed(error, now_ms)
        return now_ms
