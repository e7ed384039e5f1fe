"""The requests in flight on a connection, and their answers in the order in which the requests came.

A connection has one request in flight, as in Apache Kafka. But a Produce that only waits for other replicas lets the
next Produce begin: followers then fetch the records of both together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from broker.network.request_memory import COUNTED_BYTES, PRODUCE, cost_bytes
from broker.network.states import ANSWER, COMMIT
from broker.request.context import ClientConnection
from broker.request.pending import Answer, Parked, Running
from protocol.types import Buffer

MAX_IN_FLIGHT: Final = 5
"""Maximum number of requests in flight, as many as an idempotent producer may have
(max.in.flight.requests.per.connection): a broker remembers as many of its batches, and so detects each batch that is
sent again."""

Outcome: TypeAlias = "Answer | Exception"


class InFlight:
    """The request whose answer is due next, and the outcomes of the requests behind it."""

    __slots__ = ("_behind", "_is_over", "first", "held_bytes")

    def __init__(self) -> None:
        self.first: Parked | Running | None = None
        self.held_bytes = 0
        """Memory of the requests whose answers are awaited, in bytes."""
        self._behind: list[Outcome] = []
        self._is_over = False

    def pause_reasons(self, others: int) -> int:
        """Returns the connection's pause reasons: `others` with the reason that the requests in flight add."""
        others &= ~(ANSWER | COMMIT)
        if self.first is None:
            return others
        last: Outcome = self._behind[-1] if self._behind else self.first
        admits_next = isinstance(last, list) or (isinstance(last, Parked) and last.admits_next)
        return others | (COMMIT if admits_next and len(self._behind) < MAX_IN_FLIGHT - 1 else ANSWER)

    def begin(self, request: Parked | Running, frame: memoryview) -> None:
        """Awaits the answer of a request that is now the first. `frame` is empty if the request was counted before."""
        self.first = request
        self.held_bytes += bytes_held(request, frame)

    def add(self, outcome: Outcome, frame: memoryview) -> None:
        """Adds the outcome of a request that has begun behind the others. A request without an answer isn't added."""
        if self._is_over:
            give_up(outcome)
        elif outcome is not None:
            self._behind.append(outcome)
            self.held_bytes += bytes_held(outcome, frame)

    def answered(self, answer: list[Buffer] | None) -> tuple[list[Buffer], Exception | None]:
        """Returns what to write once the first request has its answer: this answer, and the answers that are ready
        behind it. The first request that still waits becomes the first. An error ends the sequence once the answers
        before it are written."""
        written: list[Buffer] = [] if answer is None else answer
        self.first = None
        while self._behind:
            outcome = self._behind.pop(0)
            if isinstance(outcome, Parked):
                outcome = outcome.look(is_last=outcome.is_late)
            if isinstance(outcome, (Parked, Running)):
                self.first = outcome
                break
            if isinstance(outcome, Exception):
                return written, outcome
            if outcome is not None:
                written = [*written, *outcome]
        if self.first is None:
            self.held_bytes = 0
        return written, None

    def cancel(self) -> None:
        """Cancels all requests in flight and all that are added later."""
        self._is_over, self.held_bytes = True, 0
        first, self.first = self.first, None
        behind, self._behind = self._behind, []
        give_up(first)
        for outcome in behind:
            give_up(outcome)


def give_up(outcome: Outcome) -> None:
    """Cancels a request unless it is answered."""
    if isinstance(outcome, (Parked, Running)):
        outcome.cancel()


def is_produce(frame: memoryview) -> bool:
    """True for a Produce request, which may begin behind another Produce."""
    return bytes(frame[: len(PRODUCE)]) == PRODUCE


def begun(
    answer: Callable[[ClientConnection, memoryview], Answer], connection: ClientConnection, frame: memoryview
) -> Outcome:
    """Begins a request and returns its outcome so far, or its error: the error counts once the requests before it are
    answered."""
    try:
        return answer(connection, frame)
    except Exception as error:
        return error


def bytes_held(outcome: Outcome, frame: memoryview) -> int:
    """Returns the memory that a request holds while its answer is awaited."""
    holds = isinstance(outcome, Running) or (isinstance(outcome, Parked) and not outcome.admits_next)
    return cost_bytes(frame) if holds and len(frame) > COUNTED_BYTES else 0
