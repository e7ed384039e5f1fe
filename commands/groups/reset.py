"""The new offsets of `odradek group reset` and `odradek share reset`."""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final

from cli.flags import TO, TOPIC_PARTITIONS, YES, integer
from commands.client.cluster_client import ClusterClient
from commands.errors import misuse
from commands.files import read_text
from commands.printing import Row
from commands.records.positions import EXPECTED, Lookup, Offsets, bounds, resolve
from commands.session import Session
from protocol.types import TopicPartition

OffsetsOf = Callable[[ClusterClient, str], Awaitable[Lookup]]
"""Reads the offsets of a group: committed offsets, or start offsets of share partitions. Returns the errors of
partitions whose offset is not known."""

WriteOffsets = Callable[[ClusterClient, str, Offsets], Awaitable[Mapping[TopicPartition, str]]]
"""Sets a group's offsets. Returns the errors of partitions that were not set."""

OFFSET_KEYS: Final = ("offset", "committed", "start")
"""The names of an offset in a file: a user's, and those that `group describe` and `share describe` print."""

RESET_HELP: Final = f"""\
--to takes {EXPECTED}. It resets the partitions of --topic, or else all that have offsets.
An offset outside the log becomes the log's start or end. --to-file takes the output of `describe
-o json`, JSON lines with topic, partition and offset, or the CSV lines that Apache Kafka's tools
export."""


def reset_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")
    to = parser.add_mutually_exclusive_group(required=True)
    TO.add(to, help="position in each partition")
    to.add_argument("--shift", type=integer, metavar="N", help="move by N offsets, back if negative")
    to.add_argument("--to-group", metavar="GROUP", help="the offsets of another group")
    to.add_argument("--to-file", metavar="FILE", help="the offsets in a file")
    add_topics(parser)
    YES.add(parser, help="set the offsets, instead of showing the changes")


def add_topics(parser: argparse.ArgumentParser) -> None:
    """Adds --topic, which names partitions."""
    TOPIC_PARTITIONS.add(parser, repeatable=True)


async def reset_offsets(session: Session, offsets_of: OffsetsOf, write: WriteOffsets) -> int:
    """Shows a group's new offsets, and sets them with --yes."""
    options = session.options
    (before, unknown), (after, errors) = await targets(session, offsets_of)
    errors = {**unknown, **errors}
    if options.yes and after:
        errors = {**errors, **await write(session.cluster, options.group, after)}
    rows: list[Row] = [
        {
            "topic": place.topic,
            "partition": place.partition,
            "committed": before.get(place),
            "new": after.get(place),
            **({"error": errors[place]} if place in errors else {"result": "set" if options.yes else "would be set"}),
        }
        for place in sorted({*after, *errors})
    ]
    status = session.results(("topic", "partition", "committed", "new"), rows)
    if not options.yes:
        session.output.note("odradek: nothing was changed; --yes sets the offsets")
    return status


async def targets(session: Session, offsets_of: OffsetsOf) -> tuple[Lookup, Lookup]:
    """Returns the group's present offsets, which `offsets_of` reads, and its new ones, both with the errors of
    partitions that can't be asked for. Raises CommandError."""
    options, cluster = session.options, session.cluster
    present = await offsets_of(cluster, options.group)
    places = await chosen_places(session, {*present.offsets, *present.errors})
    before = within(present, places) if options.topic else present
    if options.to_file is not None:
        given = Lookup(offsets_in(read_text(options.to_file, "--to-file"), options.to_file), {})
    elif options.to_group is not None:
        given = await offsets_of(cluster, options.to_group)
    elif options.shift is not None:
        given = Lookup({place: at + options.shift for place, at in before.offsets.items()}, {})
    else:
        positions = dict.fromkeys(places, session.position("--to", options.to))
        return before, await resolve(
            cluster, {place: at for place, at in positions.items() if place not in before.errors}
        )
    if options.topic:
        given = within(given, places)
    if not given.offsets and not given.errors and not before.errors:
        raise misuse("no offsets to set: the group has none, and the options name none")
    wanted = {place: offset for place, offset in given.offsets.items() if place not in before.errors}
    limits = await bounds(cluster, wanted)
    known = {place: offset for place, offset in wanted.items() if place not in limits.errors}
    return before, Lookup(
        {place: max(limits.starts[place], min(offset, limits.ends[place])) for place, offset in known.items()},
        {**given.errors, **limits.errors},
    )


def within(lookup: Lookup, places: Collection[TopicPartition]) -> Lookup:
    """Returns the results for some partitions."""
    return Lookup(
        {place: offset for place, offset in lookup.offsets.items() if place in places},
        {place: error for place, error in lookup.errors.items() if place in places},
    )


async def chosen_places(session: Session, committed: Collection[TopicPartition]) -> list[TopicPartition]:
    """Returns the partitions of --topic, or else all partitions with offsets."""
    options = session.options
    if not options.topic:
        if not committed and getattr(options, "to", None) is not None:
            raise misuse(f"group {options.group} has no offsets yet: name topics with --topic")
        return list(committed)
    places: list[TopicPartition] = []
    for text in options.topic:
        name, _, listed = text.partition(":")
        indexes = [partition.partition_index for partition in (await session.cluster.topic(name)).partitions]
        try:
            chosen = [int(index) for index in listed.split(",")] if listed else indexes
        except ValueError:
            raise misuse(f"--topic {text}: expected TOPIC:PARTITION,PARTITION…, such as orders:0,1") from None
        if missing := sorted(set(chosen) - set(indexes)):
            raise misuse(f"--topic {text}: {name} has no partition {missing[0]}")
        places += [TopicPartition(name, index) for index in chosen]
    return places


def offsets_in(text: str, path: str) -> Offsets:
    """Returns the offsets in a file of JSON or CSV lines. Raises CommandError."""
    offsets: Offsets = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            for entry in _entries(line):
                offset = next((entry[key] for key in OFFSET_KEYS if key in entry), None)
                if offset is not None:
                    offsets[TopicPartition(str(entry["topic"]), int(str(entry["partition"])))] = int(str(offset))
        except (ValueError, KeyError, TypeError, AttributeError, csv.Error) as error:
            raise misuse(f"--to-file {path} line {number}: expected topic, partition and offset ({error})") from None
    return offsets


def _entries(line: str) -> list[dict[str, object]]:
    """Returns the partitions of a line: a description of a group or a partition in JSON, or a partition in CSV, as
    `kafka-consumer-groups --reset-offsets --export` prints it."""
    if not line.lstrip().startswith("{"):
        return [dict(zip(("topic", "partition", "offset"), next(csv.reader([line], strict=True)), strict=True))]
    fields = json.loads(line)
    entries: list[dict[str, object]] = fields.get("partitions", [fields])
    return entries
