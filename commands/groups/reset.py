"""Where `odradek group reset` and `odradek share reset` set offsets to."""

from __future__ import annotations

import argparse
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from commands.client.cluster_client import ClusterClient
from commands.declaring import Session
from commands.errors import misuse
from commands.files import read_text
from commands.records.positions import EXPECTED, Offsets, bounds, parse_position, resolve
from protocol.types import TopicPartition

OffsetsOf = Callable[[ClusterClient, str], Awaitable[Offsets]]
"""Reads the offsets of a group: those that it has committed, or those at which its share partitions start."""

WriteOffsets = Callable[[ClusterClient, str, Offsets], Awaitable[Mapping[TopicPartition, str]]]
"""Sets a group's offsets; returns why some are not set."""

OFFSET_KEYS: Final = ("offset", "committed", "start")
"""The names that an offset has in a file: as people write it, and as `group describe` and `share describe` print
it."""

RESET_HELP: Final = f"""\
--to takes {EXPECTED}. Partitions are those that the group has offsets of, or those of --topic.
Offsets before a partition's start or behind its end become these. --to-file takes what `describe -o
json` prints, or lines with topic, partition and offset."""


def reset_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")
    to = parser.add_mutually_exclusive_group(required=True)
    to.add_argument("--to", metavar="POSITION")
    to.add_argument("--shift", type=int, metavar="N", help="so many offsets on, or back")
    to.add_argument("--to-group", metavar="GROUP", help="the offsets of another group")
    to.add_argument("--to-file", metavar="FILE", help="offsets out of a file")
    add_topics(parser)
    parser.add_argument("-y", "--yes", action="store_true", help="do it, instead of showing what would be done")


def add_topics(parser: argparse.ArgumentParser) -> None:
    """Adds --topic, which names partitions."""
    parser.add_argument(
        "--topic", action="append", default=[], metavar="TOPIC[:PARTITION,…]", help="these alone; repeatable"
    )


async def reset_offsets(session: Session, offsets_of: OffsetsOf, write: WriteOffsets) -> int:
    """Shows what a group's offsets would become, or with --yes makes them so."""
    options = session.options
    before, after = await targets(session, offsets_of)
    rows: list[dict[str, object]] = [
        {
            "topic": place.topic,
            "partition": place.partition,
            "committed": before.get(place),
            "new": offset,
            "result": "would be set",
        }
        for place, offset in sorted(after.items())
    ]
    if options.yes:
        errors = await write(session.cluster, options.group, after)
        for row, place in zip(rows, sorted(after), strict=True):
            error = errors.get(place)
            row |= {"error": error} if error else {"result": "set"}
    status = session.results(("topic", "partition", "committed", "new"), rows)
    if not options.yes:
        session.output.note("odradek: nothing was changed: --yes sets the offsets")
    return status


async def targets(session: Session, offsets_of: OffsetsOf) -> tuple[Offsets, Offsets]:
    """Returns the offsets that the group has, as `offsets_of` reads them, and those that it is to have. Raises
    CommandError."""
    options, cluster = session.options, session.cluster
    before = await offsets_of(cluster, options.group)
    places = await chosen_places(session, before)
    if options.to_file is not None:
        given = offsets_in(read_text(options.to_file, "--to-file"), options.to_file)
    elif options.to_group is not None:
        given = await offsets_of(cluster, options.to_group)
    elif options.shift is not None:
        given = {place: at + options.shift for place, at in before.items()}
    else:
        try:
            position = parse_position(options.to, cluster.clock.now_ms())
        except ValueError as error:
            raise misuse(f"--to: {error}") from None
        return before, await resolve(cluster, dict.fromkeys(places, position))
    if options.topic:
        given = {place: offset for place, offset in given.items() if place in places}
    if not given:
        raise misuse("there are no offsets to set: neither has the group any, nor do the options name any")
    limits = await bounds(cluster, given)
    return before, {
        place: max(limits.starts[place], min(offset, limits.ends[place])) for place, offset in given.items()
    }


async def chosen_places(session: Session, committed: Mapping[TopicPartition, int]) -> list[TopicPartition]:
    """Returns the partitions of --topic, or those with offsets."""
    options = session.options
    if not options.topic:
        if not committed and getattr(options, "to", None) is not None:
            raise misuse(f"group {options.group} has no offsets yet: --topic says of which topics to set some")
        return list(committed)
    places: list[TopicPartition] = []
    for text in options.topic:
        name, _, listed = text.partition(":")
        indexes = [partition.partition_index for partition in (await session.cluster.topic(name)).partitions]
        try:
            chosen = [int(index) for index in listed.split(",")] if listed else indexes
        except ValueError:
            raise misuse(f"--topic {text}: TOPIC:PARTITION,PARTITION… is expected, such as orders:0,1") from None
        if missing := sorted(set(chosen) - set(indexes)):
            raise misuse(f"--topic {text}: {name} has no partition {missing[0]}")
        places += [TopicPartition(name, index) for index in chosen]
    return places


def offsets_in(text: str, path: str) -> Offsets:
    """Returns the offsets of a file, which has JSON by line. Raises CommandError."""
    offsets: Offsets = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
            for entry in fields.get("partitions", [fields]):
                offset = next((entry[key] for key in OFFSET_KEYS if key in entry), None)
                if offset is not None:
                    offsets[TopicPartition(str(entry["topic"]), int(entry["partition"]))] = int(offset)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise misuse(
                f"--to-file {path} line {number}: topic, partition and offset are expected ({error})"
            ) from None
    return offsets
