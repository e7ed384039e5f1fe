"""The group coordinator's shard: one per partition of `__consumer_offsets`, with all groups whose ids hash to it.

Here is only what each protocol plugs into: which record is applied by whom. Decisions are functions of their own
modules, (state, request, …, ticket, now_ms) → Outcome, and go through the runtime as

    runtime.submit(partition, lambda ticket, now_ms: heartbeat(shard.state, request, client, ticket, now_ms))

Source: GroupCoordinatorShard.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping

from coordinator.group.classic import replay as classic_replay
from coordinator.group.consumer import fencing as consumer_fencing
from coordinator.group.consumer import replay as consumer_replay
from coordinator.group.offsets import delete as offset_delete
from coordinator.group.offsets import replay as offsets_replay
from coordinator.group.records import AnyRecord, GroupOutcome
from coordinator.group.share import initialization as share_initialization
from coordinator.group.share import replay as share_replay
from coordinator.group.share import sessions as share_sessions
from coordinator.group.state import Apply, GroupEnvironment, GroupState
from coordinator.outcome import Outcome, Reply, Ticket
from protocol.types import Uuid

Activate = Callable[[GroupState, int], None]
"""(state, now_ms): sets the deadlines of a protocol's groups after they were loaded."""

TopicsDeleted = Callable[[GroupState, Mapping[str, Uuid], int], GroupOutcome]
"""(state, ids of the topics by name, now_ms) → Outcome: what their end means to a protocol's groups."""

APPLY: Mapping[type, Apply] = {
    **offsets_replay.APPLY,
    **classic_replay.APPLY,
    **consumer_replay.APPLY,
    **share_replay.APPLY,
}
"""By the class of a record's key."""

ACTIVATE: tuple[Activate, ...] = (
    offset_delete.activate,
    classic_replay.activate,
    consumer_fencing.activate,
    share_sessions.activate,
)

TOPICS_DELETED: tuple[TopicsDeleted, ...] = (offset_delete.topics_deleted, share_initialization.topics_deleted)


class GroupShard:
    """`coordinator.shard.Shard` of groups. Records of types that are in no table are left alone in the log."""

    def __init__(self, environment: GroupEnvironment) -> None:
        self.state = GroupState(environment)

    def apply(self, record: AnyRecord) -> None:
        """The only writer of durable state."""
        apply = APPLY.get(type(record.key))
        if apply is not None:
            apply(self.state, record)

    def activate(self, now_ms: int) -> None:
        """All records are loaded: set the deadlines."""
        for activate in ACTIVATE:
            activate(self.state, now_ms)

    def topics_deleted(self, topics: Mapping[str, Uuid], ticket: Ticket[None], now_ms: int) -> GroupOutcome:
        """Topics are gone, names with their ids; a decision of the broker's own, whose ticket has no answer."""
        outcomes = [topics_deleted(self.state, topics, now_ms) for topics_deleted in TOPICS_DELETED]
        records = [record for outcome in outcomes for record in outcome.records]
        replies = [reply for outcome in outcomes for reply in outcome.replies]
        return Outcome(records, (*replies, Reply(ticket, None)))

    def expire(self, now_ms: int) -> GroupOutcome:
        """Decides on the deadlines that have passed."""
        return self.state.timers.expire(now_ms)

    def next_deadline_ms(self) -> int | None:
        return self.state.timers.next_deadline_ms()

    def expire_failed(self, error: Exception, now_ms: int) -> int:
        """The timer that ran last comes again; all others are due as they were."""
        self.state.timers.failed(error, now_ms)
        return now_ms

    def tickets(self) -> Iterator[Hashable]:
        """Of members that wait for a rebalance or an assignment."""
        yield from self.state.timers.tickets()
        for group in self.state.groups.values():
            yield from group.tickets()
