"""The result of a decision: records to append, answers to the requests that wait for them, and effects."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Generic, NamedTuple, ParamSpec, TypeAlias, TypeVar

from protocol.errors import KafkaError
from protocol.tuples import new_tuple

R = TypeVar("R")
A = TypeVar("A")
P = ParamSpec("P")

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
    return new_tuple(Reply, (ticket, answer))


class Result(Generic[R]):
    """A decision: records to append, in order and atomically, answers that are released once they are committed, and
    effects that are carried out once the records are applied, before any other decision.

    Without records the answers wait for the machine's earlier appends, so that no client sees state that could be lost.
    If the records can't be appended, nothing has happened: the request gets the error, and no effect is carried out.

    A decision with several parts passes its result to each of them, and they add to it.
    """

    __slots__ = ("effects", "records", "replies")

    def __init__(
        self, records: Iterable[R] = (), replies: Iterable[Reply] = (), effects: Iterable[Effect] = ()
    ) -> None:
        self.records = list(records)
        self.replies = list(replies)
        self.effects = list(effects)

    def answer(self, ticket: Ticket[A], answer: A | KafkaError) -> None:
        """Adds an answer."""
        self.replies.append(reply(ticket, answer))

    def effect(self, change: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Adds this call to the effects."""
        self.effects.append(partial(change, *args, **kwargs))


def answered(ticket: Ticket[A], answer: A | KafkaError, records: Iterable[R] = ()) -> Result[R]:
    """Returns the result of a decision that answers its own request, and has no effects."""
    return Result(records, (reply(ticket, answer),))


Decision = Callable[[Ticket[A], int], Result[R]]
"""A machine's method with its request bound: (ticket, now_ms) → Result. It may raise KafkaError instead. It changes
nothing, soft state included: made twice, it has the same result. An effect may keep the ticket, which a later result
answers, as for a JoinGroup that waits for other members."""
