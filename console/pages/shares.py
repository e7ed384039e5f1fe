"""The records of a share group: live strips, why a record is not delivered, dead letters, and their redrive."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Final, NamedTuple

from starlette.responses import Response

from commands.client.cluster_client import outcome
from commands.errors import CommandError, misuse
from commands.groups.listing import SHARE, GroupDescription, describe_group
from commands.printing import Row
from commands.shares.dead_letters import (
    DeadLetter,
    chosen_letters,
    dead_letters,
    plan_redrive,
    plan_rows,
    queue_of,
    redrive,
)
from commands.shares.records import NO_API, ShareGroupRecords, SharePartitionRecords, ShareRange, group_records
from console.changes import Plan
from console.pages.groups import name_of
from console.records import PREVIEW, decode
from console.rendering import address, event
from console.scanning import one_record
from console.visit import PageRequest
from console.watching import SLOWDOWN, UNREADABLE, reason_of
from protocol.records.record import Record
from protocol.types import TopicPartition

EVERY_MS: Final = 1000
"""Pause between two readings for a live strip; longer if a reading takes long."""

MOST_CELLS: Final = 120
"""Ranges of a strip, which a page shows without becoming slow; a link leads to the following ones."""

MOST_PARTITIONS: Final = 50
MOST_LETTERS: Final = 500
"""Limits of a page."""

GLYPHS: Final = {
    "available": "A",
    "acquired": "H",
    "acknowledged": "✓",
    "archiving": "†",
    "archived": "✕",
    "delayed": "D",
    "new": "·",
    "waiting": "K",
}
"""A sign for each kind of cell, so that no kind is told by its colour alone."""

NAMES: Final = {
    "available": "available",
    "acquired": "held by a member",
    "acknowledged": "acknowledged",
    "archiving": "becoming a dead letter",
    "archived": "archived",
    "delayed": "delayed",
    "new": "not in flight",
    "waiting": "waits for its key",
}

HELP: Final[Mapping[str, str]] = {
    "HELD": "If the member is stuck, the lock ends by itself, and the record is delivered again. "
    "share.record.lock.duration.ms is the time of a lock.",
    "BACKOFF": "odradek.share.redelivery.backoff.ms of the group is the first pause; it doubles with each delivery.",
    "SCHEDULED": "The record has the header that odradek.share.delivery.delay.header of the group names.",
    "KEY_HELD": "odradek.share.order.by.key is set: records of a key are delivered in order, to one member at a time.",
    "WINDOW_FULL": "Look at the oldest record in flight: until it is done, the window can't move. "
    "share.partition.max.record.locks is its size.",
    "OPEN_TRANSACTION": "The page of transactions shows which one is open, and can abort a hanging one.",
    "NO_MEMBER": "Start a consumer of the group. If there is one, see its assignment below, and its errors.",
    "NOT_FETCHED": "Nothing is wrong unless this lasts: then the members are busy or stuck, or too few.",
    "BURYING": "If this lasts, the queue can't be written: the broker's log says why.",
    "UNREAD": "The next fetch of a member reads it.",
}
"""The advice for each reason."""


class StripCell(NamedTuple):
    """A range on a strip."""

    range: ShareRange
    kind: str
    """A key of GLYPHS."""
    link: str

    @property
    def glyph(self) -> str:
        return GLYPHS.get(self.kind, "?")

    @property
    def label(self) -> str:
        """The text for readers who don't see the strip."""
        shown = self.range
        offsets = f"{shown.first}" if shown.first == shown.last else f"{shown.first} to {shown.last}"
        deliveries = f", delivered {shown.deliveries} times" if shown.deliveries else ""
        member = f", member {shown.member}" if shown.member else ""
        return f"{offsets}: {NAMES.get(self.kind, self.kind)}{deliveries}{member}; {shown.why}"


class Strip(NamedTuple):
    """A share partition as a strip of cells."""

    partition: SharePartitionRecords
    cells: Sequence[StripCell]
    following: str
    """The link to the following cells; empty if there are none."""

    @property
    def place(self) -> TopicPartition:
        return self.partition.place

    @property
    def busy(self) -> Sequence[StripCell]:
        """The cells of records that a member has, or that wait for a time or a key."""
        return [cell for cell in self.cells if cell.kind in ("acquired", "delayed", "waiting", "archiving")]


def kind_of(entry: ShareRange) -> str:
    return "waiting" if entry.waits_for is not None else entry.state


def strip_of(name: str, partition: SharePartitionRecords) -> Strip:
    """Returns the strip of a share partition."""
    topic, index = partition.place
    cells = []
    for entry in partition.ranges[:MOST_CELLS]:
        link = address("/share/record", name=name, topic=topic, partition=str(index), offset=str(entry.first))
        cells.append(StripCell(entry, kind_of(entry), link))
    following = partition.next_offset
    if len(partition.ranges) > MOST_CELLS:
        following = partition.ranges[MOST_CELLS].first
    more = {"name": name, "topic": topic, "partition": str(index), "from": str(following)}
    return Strip(partition, cells, "" if following is None else address("/share", **more))


async def strips(
    visit: PageRequest, name: str, only: TopicPartition | None = None, first_offset: int = -1
) -> dict[str, object]:
    """Returns the values of the live part."""
    found = await outcome(group_records(visit.cluster, name, most=MOST_CELLS + 1, only=only, first_offset=first_offset))
    problem = found.message if isinstance(found, CommandError) else ""
    records = ShareGroupRecords((), None) if isinstance(found, CommandError) else found
    return {
        "name": name,
        "strips": [strip_of(name, partition) for partition in records.partitions[:MOST_PARTITIONS]],
        "hidden": max(len(records.partitions) - MOST_PARTITIONS, 0),
        "share_problem": problem,
        "options": records.options,
        "no_api": "" if problem or records.has_api else NO_API,
        "kinds": [(kind, GLYPHS[kind], NAMES[kind]) for kind in GLYPHS],
    }


async def part(visit: PageRequest) -> Response:
    """Shows one share partition from an offset on: the cells that the strip of the group's page has no room for."""
    name, place = name_of(visit), _place(visit)
    values = await strips(visit, name, place, visit.number("from", -1, least=-1, most=(1 << 63) - 1))
    return visit.render("share.html", {**values, "place": place})


async def live(visit: PageRequest) -> Response:
    name = name_of(visit)

    async def events() -> AsyncGenerator[str, None]:
        while True:
            started_ms = visit.cluster.clock.monotonic_ms()
            try:
                values = await strips(visit, name)
            except UNREADABLE as error:  # shown until the cluster can be read again
                values = {"name": name, "strips": [], "hidden": 0, "share_problem": reason_of(error), "options": None}
                values |= {"no_api": "", "kinds": []}
            visit.watched.look()
            yield event("share", visit.text("share_live.html", values))
            took_ms = visit.cluster.clock.monotonic_ms() - started_ms
            await visit.breathe(max(EVERY_MS, took_ms * SLOWDOWN))

    return visit.stream(events())


def _place(visit: PageRequest) -> TopicPartition:
    topic = visit.query("topic")
    if not topic:
        raise misuse("topic: expected the name of a topic")
    return TopicPartition(topic, visit.number("partition", -1, least=0))


async def record(visit: PageRequest) -> Response:
    """Shows one record: its state, and why it is not delivered."""
    name, place = name_of(visit), _place(visit)
    offset = visit.number("offset", -1, least=0, most=(1 << 63) - 1)
    found = await group_records(visit.cluster, name, most=1, only=place, first_offset=offset)
    (partition,) = found.partitions
    entry = next((entry for entry in partition.ranges if entry.first <= offset <= entry.last), None)
    content = await outcome(one_record(visit.cluster, place, offset, visit.terms.opener))
    shown = None if isinstance(content, CommandError) else content
    values = {
        "name": name,
        "place": place,
        "offset": offset,
        "partition": partition,
        "options": found.options,
        "range": entry,
        "kind": "" if entry is None else NAMES.get(kind_of(entry), kind_of(entry)),
        "glyph": "" if entry is None else GLYPHS.get(kind_of(entry), "?"),
        "help": "" if entry is None else HELP.get(entry.reason, ""),
        "no_api": "" if found.has_api else NO_API,
        "content": None,
        "is_part": visit.is_part,
    }
    if shown is not None:
        values["content"] = {"key": decode(shown.key, "auto", PREVIEW), "value": decode(shown.value, "auto", PREVIEW)}
    return visit.render("share_record_part.html" if visit.is_part else "share_record.html", values)


# Dead letters.


class LettersPage(NamedTuple):
    """The dead letters of a group."""

    queue: str
    letters: Sequence[DeadLetter]
    problem: str


async def _letters(visit: PageRequest, name: str) -> LettersPage:
    """Reads the group's letters. A queue that is not the group's present one is named in the URL or the form."""
    queue = visit.form.get("queue", "").strip() or visit.query("queue")
    try:
        queue = queue or await queue_of(visit.cluster, name)
        return LettersPage(queue, await dead_letters(visit.cluster, name, queue), "")
    except CommandError as error:
        return LettersPage(queue, (), error.message)


async def letters(visit: PageRequest) -> Response:
    name = name_of(visit)
    description = await _share_group(visit, name)
    queue, found, problem = await _letters(visit, name)
    values = {
        "name": name,
        "state": description.state,
        "queue": queue,
        "problem": problem,
        "letters": [{"letter": letter, "reason": _masked(visit, letter.reason)} for letter in found[:MOST_LETTERS]],
        "hidden": max(len(found) - MOST_LETTERS, 0),
    }
    return visit.render("share_letters.html", values)


async def _share_group(visit: PageRequest, name: str) -> GroupDescription:
    description = await describe_group(visit.cluster, name)
    if description.type != SHARE:
        raise misuse(f"group {name[:100]} is a {description.type} group, which has no dead letters")
    return description


def _masked(visit: PageRequest, text: str) -> str:
    """Returns the text of a header with its masks applied."""
    return (visit.terms.opener.masks.record(Record(value=text.encode())).value or b"").decode(errors="replace")


async def send_back(visit: PageRequest) -> Plan:
    """Plans a redrive of the chosen letters."""
    name = name_of(visit)
    await _share_group(visit, name)
    queue, found, problem = await _letters(visit, name)
    if problem:
        raise CommandError(problem)
    names = [field.removeprefix("letter ") for field in visit.form if field.startswith("letter ")]
    if not names:
        raise misuse("no letter is chosen: go back, and tick the letters to redrive")
    chosen = chosen_letters(found, names)
    plans = await plan_redrive(visit.cluster, chosen)

    async def carry_out() -> Sequence[Row]:
        await redrive(visit.cluster, plans)
        return plan_rows(plans, "redriven")

    topics = ", ".join(sorted({letter.source.topic for letter in chosen}))
    return Plan(
        "group.redrive",
        name,
        f"Redrive {len(chosen)} dead letter{'s' if len(chosen) > 1 else ''} of group {name}",
        carry_out,
        address("/share/letters", name=name, queue=queue),
        ("letter", "topic", "partition", "offset", "reason", "record_from"),
        plan_rows(plans, ""),
        ["odradek", "share", "redrive", name, *(letter.name for letter in chosen), "--queue", queue, "--yes"],
        fields={"queue": queue, **{f"letter {letter.name}": "on" for letter in chosen}},
        note=f"Every group of {topics} gets these records again, at the end of their partitions.",
    )
