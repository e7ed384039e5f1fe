"""Runs the controller's duties when they are due, with one timer and no task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from broker.clock import Clock, Timer
from broker.logging import get_logger
from coordinator.cluster.duties import Duties, Duty
from coordinator.cluster.image import Image
from coordinator.cluster.record import MetadataRecord

BUSY_WAIT_MS: Final = 20
"""Time after which a duty is tried again if a decision was being made."""

log = get_logger("broker.metadata")


def is_power_of_two(number: int) -> bool:
    """True for 1, 2, 4, 8 and so on."""
    return number & (number - 1) == 0


class DutyTimer:
    """Wakes for the next duty."""

    def __init__(
        self,
        duties: Duties,
        clock: Clock,
        state: Callable[[], Image],
        write: Callable[[Sequence[MetadataRecord]], None],
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        """`write` applies and appends records, all or none, and starts their commit. `is_busy` is true while a decision
        is being made, when nothing may be written.
        """
        self._duties = duties
        self._clock = clock
        self._state = state
        self._write = write
        self._is_busy = is_busy
        self._timer: Timer | None = None
        self._expected_ms = 0
        self._stopped = False

    def begin(self) -> None:
        """Starts the timer; each duty is first due after its whole period."""
        self._duties.begin(self._clock.monotonic_ms())
        self.arm()

    def arm(self) -> None:
        """Sets the timer for the next duty, which may have changed with the state."""
        now_ms = self._clock.monotonic_ms()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._duties.woke_late(now_ms - self._expected_ms, now_ms)  # what came first after a long stop has set it
        next_ms = None if self._stopped else self._duties.next_ms(self._state())
        if next_ms is not None:
            self._expected_ms = max(next_ms, now_ms)
            self._timer = self._clock.call_after(self._expected_ms - now_ms, self._wake)

    def stop(self) -> None:
        """Stops the timer for good."""
        self._stopped = True
        self.arm()

    def _wake(self) -> None:
        self._timer = None
        now_ms = self._clock.monotonic_ms()
        self._duties.woke_late(now_ms - self._expected_ms, now_ms)
        if self._is_busy():
            self._expected_ms = now_ms + BUSY_WAIT_MS
            self._timer = self._clock.call_after(BUSY_WAIT_MS, self._wake)
            return
        while not self._stopped and (duty := self._duties.due(self._state(), now_ms)) is not None:
            self._carry_out(duty, now_ms)
        self.arm()

    def _carry_out(self, duty: Duty, now_ms: int) -> None:
        try:
            records, more, _ = duty.decide(self._state(), now_ms)
            if records:
                self._write(records)
        except Exception as error:  # the duty is retried, because brokers must be fenced in any case
            failures = self._duties.failed(duty, now_ms)
            if is_power_of_two(failures):  # a full disk must not cause a line each second
                log.error("a controller task failed", duty=duty.name, failures=failures, exc_info=error)
            return
        self._duties.done(duty, now_ms, more=more)
        if records and not duty.silent:
            log.info("a controller task changed the metadata", duty=duty.name, records=len(records))
