"""The result of a decision: records to append, answers to the requests that wait for them, and effects."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from protocol.errors import KafkaError

R = TypeVar("R")
A = TypeVar("A")

_new: Final = tuple.__new__  # a NamedTuple's own constructor costs three times as much

Effect: TypeAlias = Callable[[], object]
"""A change of soft state (timers, waiting members), or a message to send. It must not fail."""


class Ticket(Generic[A]):
    """The claim of a waiting request to an answer of type A: a decision may give it now, later, or fail it."""

    __slots__ = ()


class Reply(NamedTuple):
    """An answer for the holder of a ticket; a KafkaError is raised there."""

    ticket: Hashable
    answer: object | None


def reply(ticket: Ticket[A], answer: A | KafkaError) -> Reply:
    """Returns a Reply whose answer is of the ticket's type."""
    return _new(Reply, (ticket, answer))


class Result(Generic[R]):
    """A decision: records to append, in order and atomically, answers that are released once they are committed, and
    effects that are carried out once the records are applied, before any other decision.

    Without records the answers wait for the machine's earlier appends, so that no client sees state that could be lost.
    If the records can't be appended, nothing has happened: the request gets the error, and no effect is carried out.
    """

    __slots__ = ("effects", "records", "replies")

    def __init__(
        self, records: Sequence[R] = (), replies: Sequence[Reply] = (), effects: Sequence[Effect] = ()
    ) -> None:
        self.records = records
        self.replies = replies
        self.effects = effects


Decision = Callable[[Ticket[A], int], Result[R]]
"""A machine's method with its request bound: (ticket, now_ms) → Result. It may raise KafkaError instead. It changes
nothing, soft state included: made twice, it has the same result. An effect may keep the ticket, which a later result
answers, as for a JoinGroup that waits for other members."""
