"""Scenario transcripts: text commands to a shard of groups, and their effects.

    # a comment; blank lines part steps

    join g a topics=orders
    ----
    record GroupMetadata group=g = protocol_type='' generation=0 …
    a <- JoinGroup error=MEMBER_ID_REQUIRED member_id=a#1 …
    timer session g a#1 in 10000

Above the line are commands, one to a line; below it are their effects: records, answers (to whom), notes, timers that
were set or moved, errors. `pytest tests/scenarios --rewrite` writes the files anew; the diff is the review.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, TypeVar

from coordinator.engine.result import Ticket
from coordinator.group.records import GroupResult
from coordinator.group.state import GroupEnvironment, GroupState
from tests.coordinator.group.world import Groups
from tests.scenarios.printing import Printer

A = TypeVar("A")
C = TypeVar("C")
Q = TypeVar("Q")

RULE = "----"


class Step(NamedTuple):
    """Lines before the step (comments), its commands, and the effects that the transcript has for them."""

    before: list[str]
    commands: list[str]
    effects: list[str]


class Words(NamedTuple):
    """The words of a command, and its name=value arguments."""

    plain: list[str]
    named: dict[str, str]

    def int(self, name: str, default: int) -> int:
        return int(self.named.get(name, default))

    def list(self, name: str, default: str = "") -> list[str]:
        return [word for word in self.named.get(name, default).split(",") if word]


class Scenario(Groups):
    """One shard, with clients by name."""

    def __init__(self) -> None:
        super().__init__()
        self.printer = Printer(self)
        self.effects: list[str] = []
        self.member_ids: dict[str, str] = {}
        """The latest member id of each client."""

    @property
    def world(self) -> GroupEnvironment:
        return super().world._replace(note=self._note)

    def _note(self, event: str, **fields: object) -> None:
        self.effects.append("note " + self.printer.fields(event, fields))

    def perform(
        self, who: str, decide: Callable[[GroupState, Q, C, Ticket[A], int], GroupResult], request: Q, client: C
    ) -> None:
        """Lets the shard decide on a request."""
        self.ask(decide, request, client, partial(self._answered, who))

    def decide(self, who: str, decision: Callable[[Ticket[A], int], GroupResult]) -> None:
        self.send(decision, partial(self._answered, who))

    def carry_out(self, result: GroupResult) -> None:
        self.effects += map(self.printer.record, result.records)
        super().carry_out(result)

    def _answered(self, who: str, answer: object) -> None:
        member_id = getattr(answer, "member_id", "")
        if member_id:
            self.member_ids[who] = member_id
        self.effects.append(f"{who} <- {self.printer.answer(answer)}")

    def member_id(self, who: str) -> str:
        """Returns a client's member id; for a client without one, its name, so that a test can send a wrong id."""
        return self.member_ids.get(who, "" if who == "nobody" else who)


Command = Callable[[Scenario, Words], None]


def steps(text: str) -> Iterator[Step]:
    """Yields the steps of a transcript."""
    before: list[str] = []
    for block in text.strip().split("\n\n"):
        lines = block.split("\n")
        commands = [line for line in lines[: lines.index(RULE)] if not line.startswith("#")] if RULE in lines else []
        if not commands:
            before += [*lines, ""]
            continue
        comments = [line for line in lines if line.startswith("#")]
        yield Step([*before, *comments], commands, lines[lines.index(RULE) + 1 :])
        before = []


def words(line: str) -> Words:
    parts = shlex.split(line)
    named = dict(part.split("=", 1) for part in parts if "=" in part)
    return Words([part for part in parts if "=" not in part], named)


def play(text: str, commands: dict[str, Command]) -> str:
    """Returns the transcript with its commands and their present effects."""
    scenario = Scenario()
    blocks = []
    for step in steps(text):
        timers = scenario.printer.timers()
        for line in step.commands:
            command = words(line)
            commands[command.plain[0]](scenario, Words(command.plain[1:], command.named))
        effects = [*scenario.effects, *scenario.printer.timers_since(timers)]
        scenario.effects.clear()
        blocks.append("\n".join([*step.before, *step.commands, RULE, *effects]))
    return "\n\n".join(blocks) + "\n"
