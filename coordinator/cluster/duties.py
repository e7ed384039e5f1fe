"""The periodic work of the active controller, and the times when it is due.

Brokers whose sessions have ended are fenced, one at a time, so that each election takes the last fencing into account.
Preferred leaders are elected again, and unclean leaders if the topic allows it. If other brokers follow the log and
it is idle, a no-op record shows them that they are up to date.

Source: Kafka's PeriodicTaskControlManager and the tasks that QuorumController registers there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from coordinator.cluster.brokers.heartbeat import fence_broker
from coordinator.cluster.brokers.sessions import BrokerSessions
from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.image import Image
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.partitions.sweeps import elect_preferred_leaders, elect_unclean_leaders
from coordinator.cluster.record import ClusterResult
from coordinator.engine.result import Result
from protocol.backoff import Backoff
from protocol.lazy import lazy
from protocol.metadata_records.log import NoOpRecord

if TYPE_CHECKING:
    from coordinator.cluster.security import delegation_tokens
else:  # at the first sweep
    delegation_tokens = lazy("coordinator.cluster.security.delegation_tokens")

AGAIN_MS = 10
"""The pause after a duty that has more to do; requests come first (PeriodicTask's immediate period)."""

RETRIES = Backoff(initial_ms=100, max_ms=60_000)
"""The pauses before a duty is tried again because its records can't be written; at most the duty's period. They are
short because a dead broker counts as alive until the record that fences it is written. Kafka's
PeriodicTaskControlManager waits for five minutes; but if Kafka's log accepts no records, another controller takes
over."""

CHECKS_A_SESSION = 8
"""Number of checks during the length of a session (QuorumController.maybeFenceStaleBrokerPeriodNs)."""


class Duty(NamedTuple):
    """A task that is repeated after `period_ms`."""

    name: str
    period_ms: int
    decide: Callable[[Image, int], tuple[ClusterResult, bool]]
    """(state, now) → the decision, and True if there is more to do."""
    alone: bool = True
    """True if the duty is also needed in a single-node cluster."""
    silent: bool = False
    """True if the duty is not logged, because it tells an operator nothing."""


class Duties:
    """The duties, and the time when each is due next, by the monotonic clock."""

    def __init__(
        self,
        options: ClusterOptions,
        configs: ConfigRules,
        sessions: BrokerSessions,
        time_of_day_ms: Callable[[], int],
    ) -> None:
        """`time_of_day_ms` returns milliseconds since 1970, as in records."""
        self._own_id = options.own_broker_id
        self._configs = configs
        self.sessions = sessions
        self.time_of_day_ms = time_of_day_ms
        self._idle_at = -1
        """The end offset of the log at the last check; if it is still the same, the log is idle."""
        self._duties = tuple(duty for duty in self._all(options) if duty.period_ms)
        self._due: dict[str, int] = {}
        self._failures: dict[str, int] = {}
        """Number of consecutive failures of each duty."""

    def _all(self, options: ClusterOptions) -> tuple[Duty, ...]:
        check_ms = max(options.broker_session_timeout_ms // CHECKS_A_SESSION, 1)
        balance_ms = options.leader_imbalance_check_interval_ms if options.auto_leader_rebalance_enable else 0
        sweep_ms = options.tokens.expiry_check_interval_ms if options.tokens.secret_key is not None else 0
        return (
            Duty("fence a stale broker", check_ms, self._fence, alone=False),
            Duty("elect preferred leaders", balance_ms, lambda state, _: elect_preferred_leaders(state, self._configs)),
            Duty(
                "elect unclean leaders",
                options.unclean_leader_election_interval_ms,
                lambda state, _: elect_unclean_leaders(state, self._configs),
            ),
            Duty("remove expired delegation tokens", sweep_ms, self._expire_tokens),
            Duty(
                "write a no-op record", options.metadata_max_idle_interval_ms, self._note_idle, alone=False, silent=True
            ),
        )

    def begin(self, now_ms: int) -> None:
        """Makes each duty due after its whole period."""
        self._due = {duty.name: now_ms + duty.period_ms for duty in self._duties}

    def next_ms(self, image: Image) -> int | None:
        """Returns the time when the next duty is due; None if there are no duties."""
        return min((self._due[duty.name] for duty in self._duties_in(image)), default=None)

    def due(self, image: Image, now_ms: int) -> Duty | None:
        """Returns the duty that has been due for the longest time; None if no duty is due."""
        due = [duty for duty in self._duties_in(image) if self._due[duty.name] <= now_ms]
        return min(due, key=lambda duty: self._due[duty.name], default=None)

    def done(self, duty: Duty, now_ms: int, *, more: bool) -> None:
        """Records that a duty was performed, or the part that can be done at once."""
        self._failures.pop(duty.name, None)
        self._due[duty.name] = now_ms + (AGAIN_MS if more else duty.period_ms)

    def failed(self, duty: Duty, now_ms: int) -> int:
        """Records that the duty's records could not be written; returns the number of consecutive failures."""
        failures = self._failures[duty.name] = self._failures.get(duty.name, 0) + 1
        self._due[duty.name] = now_ms + min(RETRIES.delay_ms(failures), duty.period_ms)
        return failures

    def is_late(self, late_ms: int) -> bool:
        """True if this process was stopped, or too busy, for so long that it may have missed heartbeats."""
        return late_ms > self.sessions.session_ms // CHECKS_A_SESSION

    def _duties_in(self, image: Image) -> list[Duty]:
        alone = all(broker_id == self._own_id for broker_id in image.brokers)
        return [duty for duty in self._duties if duty.alone or not alone]

    def _fence(self, image: Image, now_ms: int) -> tuple[ClusterResult, bool]:
        """Returns the decision that fences the broker whose session ended first. The session is removed once the image
        shows that the broker is fenced.
        """
        broker_id = self.sessions.stale(now_ms)
        if broker_id is None:
            return Result(), False
        result: ClusterResult = Result(fence_broker(image, broker_id, self._configs))
        if not result.records:
            result.effect(self.sessions.end, broker_id)
        return result, True

    def _expire_tokens(self, image: Image, _: int) -> tuple[ClusterResult, bool]:
        return delegation_tokens.expire_tokens(image, self.time_of_day_ms())

    def _note_idle(self, image: Image, _: int) -> tuple[ClusterResult, bool]:
        result: ClusterResult = Result([NoOpRecord()] if image.offset == self._idle_at else ())
        result.effect(self.note_idle, image)
        return result, False

    def note_idle(self, image: Image) -> None:
        """Records the log's end at a check."""
        self._idle_at = image.offset
