"""Builds the result of a decision that has several parts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from coordinator.engine.result import Effect, Reply, Result, Ticket
from coordinator.group.records import AnyRecord, GroupResult
from protocol.errors import KafkaError

A = TypeVar("A")
P = ParamSpec("P")


class Draft:
    """The records, replies and effects of a decision so far; `result` returns them all."""

    __slots__ = ("effects", "records", "replies")

    def __init__(self) -> None:
        self.records: list[AnyRecord] = []
        self.replies: list[Reply] = []
        self.effects: list[Effect] = []

    def answer(self, ticket: Ticket[A], answer: A | KafkaError) -> None:
        """Releases the answer once the records are committed."""
        self.replies.append(Reply(ticket, answer))

    def effect(self, change: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Makes this call, which changes soft state, once the records are applied."""
        self.effects.append(partial(change, *args, **kwargs))

    def result(self) -> GroupResult:
        return Result(self.records, self.replies, self.effects)

    def carry_out(self) -> None:
        """Carries out the effects now, for a step that has no records: after loading, or inside another effect."""
        assert len(self.records) + len(self.replies) == 0, "there is no append"
        for effect in self.effects:
            effect()
