"""Drives a machine as the engine does, at once and on a clock that only a test moves.

driver = Driver(machine)
asked = driver.send(lambda ticket, now_ms: machine.heartbeat(request, ticket, now_ms))
driver.advance(10_000)
assert asked.answer == …
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from coordinator.engine.machine import Machine
from coordinator.engine.result import Decision, Result, Ticket
from protocol.errors import ErrorCode, KafkaError
from tests.coordinator.purity import decided

A = TypeVar("A")
M = TypeVar("M", bound=Machine[Any])
R = TypeVar("R")

START_MS = 1_000_000


def carry_out(machine: Machine[R], result: Result[R]) -> None:
    """Applies the records, and then carries out the effects."""
    for record in result.records:
        machine.apply(record)
    for effect in result.effects:
        effect()


class Asked(Generic[A, R]):
    """A request: the records of its decision, and its answer once it is given."""

    def __init__(self, then: Callable[[A | KafkaError], object] | None = None) -> None:
        self.records: list[R] = []
        self.waits = True
        self._answer: A | KafkaError | None = None
        self._then = then

    def receive(self, answer: A | KafkaError) -> None:
        self._answer, self.waits = answer, False
        if self._then is not None:
            self._then(answer)

    @property
    def answer(self) -> A:
        """Returns the answer; raises the request's error."""
        assert not self.waits, "there is no answer yet"
        if isinstance(self._answer, KafkaError):
            raise self._answer
        return self._answer  # type: ignore[return-value]  # A may be None

    @property
    def error(self) -> ErrorCode | None:
        return self._answer.code if isinstance(self._answer, KafkaError) else None


class Driver(Generic[M, R]):
    """A machine, its log, and the requests that wait for an answer."""

    def __init__(
        self,
        machine: M,
        through_log: Callable[[Sequence[R], int], Sequence[R]] = lambda records, now_ms: records,
    ) -> None:
        """`through_log` returns records as the log returns them, or raises KafkaError if they can't be appended."""
        self.machine = machine
        self.now_ms = START_MS
        self.log: list[R] = []
        """All records, as the log returns them."""
        self.written: list[R] = []
        """The records of the last request, or of the last advance of the clock."""
        self.append_fails: Callable[[], bool] = lambda: False
        """Called for each result with records."""
        self.is_doubling = False
        """True if each decision is made twice: it must have the same result and change nothing."""
        self.drawn = 0
        """The next random number, for an environment that counts instead of drawing random numbers."""
        self._through_log = through_log
        self._waiting: dict[object, Asked[Any, R]] = {}

    def send(self, decision: Decision[A, R], then: Callable[[A | KafkaError], object] | None = None) -> Asked[A, R]:
        """Decides on a request; `then` is called with its answer, now or later."""
        ticket: Ticket[A] = Ticket()
        asked = self._waiting[ticket] = Asked[A, R](then)
        self.written = asked.records
        try:
            self.carry_out(self._decide(lambda: decision(ticket, self.now_ms)))
        except KafkaError as error:
            self._waiting.pop(ticket).receive(error)
        return asked

    def advance(self, by_ms: int) -> list[R]:
        """Advances the time, and expires each deadline at its time; returns the records."""
        written: list[R] = []
        end_ms = self.now_ms + by_ms
        while (due_ms := self.machine.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.now_ms, self.written = max(self.now_ms, due_ms), written
            try:
                self.carry_out(self._decide(lambda: self.machine.expire(self.now_ms)))
            except KafkaError as error:
                self.machine.expire_failed(error, self.now_ms)
        self.now_ms, self.written = end_ms, written
        return written

    def carry_out(self, result: Result[R]) -> None:
        """Appends, applies, carries out the effects and answers. Raises KafkaError if the append fails."""
        if result.records and self.append_fails():
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if result.records:
            self.log += self._through_log(result.records, self.now_ms)
            self.written += result.records
        carry_out(self.machine, result)
        for ticket, answer in result.replies:
            self._waiting.pop(ticket).receive(answer)

    def replace(self, machine: M) -> None:
        """Replaces the machine, as if another broker had loaded the log: requests that wait here fail."""
        self.machine = machine
        waiting, self._waiting = self._waiting, {}
        for asked in waiting.values():
            asked.receive(KafkaError(ErrorCode.NOT_COORDINATOR))

    def _decide(self, decide: Callable[[], Result[R]]) -> Result[R]:
        drawn = self.drawn
        if not self.is_doubling:
            return decide()
        return decided(self.machine, decide, again=lambda: setattr(self, "drawn", drawn))
