"""The outcome of a decision: records to append, and answers to the requests that wait for them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from protocol.errors import KafkaError

R = TypeVar("R")
A = TypeVar("A")

_new: Final = tuple.__new__  # a NamedTuple's own constructor costs three times as much


class Ticket(Generic[A]):
    """One waiting request's claim to one answer of type A: whoever decides may give it now, later, or fail it."""

    __slots__ = ()


class Reply(NamedTuple):
    """An answer for the holder of a ticket; a KafkaError is raised to it."""

    ticket: Hashable
    answer: object | None


def reply(ticket: Ticket[A], answer: A | KafkaError) -> Reply:
    """A Reply whose answer is of the ticket's type."""
    return _new(Reply, (ticket, answer))


class Outcome(Generic[R]):
    """A decision: facts to append, in order and in one go, and answers that are released once they are committed.

    Without records the answers wait for what the shard appended before, so that nobody is told what could be lost.
    `then` decides on the state that the records make: (now_ms) → Outcome. It is called once
    they are applied, before any other decision; if they could not be appended it is not called.
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
durable state. It may also keep the ticket and answer it in a later outcome: a JoinGroup that waits for the others."""
