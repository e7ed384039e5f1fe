"""The work of the active controller that nobody asks for, and when it is due.

Brokers whose sessions are over are fenced, one at a time, so that each election knows of the last one. Partitions get
back their preferred leaders, or an unclean one where that is allowed. Where other brokers follow the log, one that was
idle gets a no-op record, by which they see that they are up to date. Source: Kafka's PeriodicTaskControlManager and the
tasks that QuorumController registers there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from coordinator.cluster.brokers.heartbeat import fence_broker
from coordinator.cluster.brokers.sessions import BrokerSessions
from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.decided import Decided
from coordinator.cluster.image import Image
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.partitions.sweeps import elect_preferred_leaders, elect_unclean_leaders
from protocol.metadata_records.log import NoOpRecord

AGAIN_MS = 10
"""The pause after a duty that has left something to do: requests come first (PeriodicTask's immediate period)."""

FIRST_PAUSE_MS = 100
"""The pause after a duty whose records could not be written. It doubles with each time in a row, up to the duty's
period: a broker that is gone counts as alive until the disk takes the record that fences it."""

LONGEST_PAUSE_MS = 60_000
"""And up to this. Kafka's PeriodicTaskControlManager waits five minutes at once; but where its log takes no records,
another controller takes over."""

MOST_DOUBLINGS = 10
assert FIRST_PAUSE_MS << MOST_DOUBLINGS > LONGEST_PAUSE_MS

CHECKS_A_SESSION = 8
"""How often sessions are looked at in the time of one (QuorumController.maybeFenceStaleBrokerPeriodNs)."""


class Duty(NamedTuple):
    """Something to do each `period_ms`."""

    name: str
    period_ms: int
    decide: Callable[[Image, int], Decided[bool]]
    """(state, now) → the records, and whether there is more to do."""
    alone: bool = True
    """Whether there is something to do where the broker in this process is the only one."""
    silent: bool = False
    """Whether it is nothing to tell an operator."""


class Duties:
    """The duties and the times at which they are due next, of a clock that only grows."""

    def __init__(
        self,
        options: ClusterOptions,
        configs: ConfigRules,
        sessions: BrokerSessions,
        time_of_day_ms: Callable[[], int],
    ) -> None:
        """`time_of_day_ms` returns milliseconds since 1970, which records have."""
        self._own_id = options.own_broker_id
        self._configs = configs
        self._sessions = sessions
        self._time_of_day_ms = time_of_day_ms
        self._idle_at = -1
        """Where the log ends as long as nobody writes to it."""
        self._duties = tuple(duty for duty in self._all(options) if duty.period_ms)
        self._due: dict[str, int] = {}
        self._failures: dict[str, int] = {}
        """How often in a row a duty has failed."""

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
        """Begins with nothing due: each has its whole period."""
        self._due = {duty.name: now_ms + duty.period_ms for duty in self._duties}

    def next_ms(self, image: Image) -> int | None:
        """Returns the time at which something is due; None if there is nothing to do ever."""
        return min((self._due[duty.name] for duty in self._duties_in(image)), default=None)

    def due(self, image: Image, now_ms: int) -> Duty | None:
        """Returns what has been due for longest."""
        due = [duty for duty in self._duties_in(image) if self._due[duty.name] <= now_ms]
        return min(due, key=lambda duty: self._due[duty.name], default=None)

    def done(self, duty: Duty, now_ms: int, *, more: bool) -> None:
        """Notes that a duty was carried out, as far as it can be at once."""
        self._failures.pop(duty.name, None)
        self._due[duty.name] = now_ms + (AGAIN_MS if more else duty.period_ms)

    def failed(self, duty: Duty, now_ms: int) -> int:
        """Notes that its records could not be written; returns how often in a row that was."""
        failures = self._failures[duty.name] = self._failures.get(duty.name, 0) + 1
        pause_ms = FIRST_PAUSE_MS << min(failures - 1, MOST_DOUBLINGS)
        self._due[duty.name] = now_ms + min(pause_ms, duty.period_ms, LONGEST_PAUSE_MS)
        return failures

    def woke_late(self, late_ms: int, now_ms: int) -> None:
        """This process was stopped, or too busy: the heartbeats of that time wait to be read, and nobody is to be
        fenced for them."""
        if late_ms > self._sessions.session_ms // CHECKS_A_SESSION:
            self._sessions.extend(late_ms, now_ms)

    def _duties_in(self, image: Image) -> list[Duty]:
        alone = all(broker_id == self._own_id for broker_id in image.brokers)
        return [duty for duty in self._duties if duty.alone or not alone]

    def _fence(self, image: Image, now_ms: int) -> Decided[bool]:
        """A session ends once its broker is fenced in the state, as after the last time."""
        broker_id = self._sessions.stale(now_ms)
        if broker_id is None:
            return Decided((), False)
        records = fence_broker(image, broker_id, self._configs).records
        if not records:
            self._sessions.end(broker_id)
        return Decided(records, True)

    def _expire_tokens(self, image: Image, _: int) -> Decided[bool]:
        from coordinator.cluster.security.delegation_tokens import expire_tokens  # few clusters have any

        return expire_tokens(image, self._time_of_day_ms())

    def _note_idle(self, image: Image, _: int) -> Decided[bool]:
        is_idle = image.offset == self._idle_at
        self._idle_at = image.offset + is_idle
        return Decided([NoOpRecord()] if is_idle else (), False)
