"""The outcome of a decision: records to append, and answers to the requests that wait for them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from protocol.errors import KafkaError

R = TypeVar("R")
A = TypeVar("A")

_new: Final = tuple.__new__  # a NamedTuple's own constructor costs three times as much


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


class Outcome(Generic[R]):
    """A decision: records to append, in order and atomically, and answers that are released once they are committed.

    Without records the answers wait for the shard's earlier appends, so that no client sees state that could be lost.
    `then` decides on the state that the records make: (now_ms) → Outcome. It is called once they are applied, before
    any other decision; if they could not be appended it is not called.
    """

    __slots__ = ("records", "replies", "then")

    def __init__(
        self, records: Sequence[R] = (), replies: Sequence[Reply] = (), then: Callable[[int], Outcome[R]] | None = None
    ) -> None:
        self.records = records
        self.replies = replies
        self.then = then


Decision = Callable[[Ticket[A], int], Outcome[R]]
"""A shard's method with its request bound: (ticket, now_ms) → Outcome. It may raise KafkaError instead, and changes no
durable state. It may also keep the ticket and answer it in a later outcome, as for a JoinGroup that waits for other
members."""
