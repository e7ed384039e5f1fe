"""The list of groups of every type, and the page of one group: partitions, members, lag over time, reset."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from starlette.responses import JSONResponse, Response

from commands.client.cluster_client import ClusterClient, outcome
from commands.errors import CommandError, misuse
from commands.groups.lags import partition_rows
from commands.groups.listing import SHARE, GroupDescription, delete_group, describe_group
from commands.groups.offsets import commit_offsets, committed_offsets
from commands.printing import Row
from commands.records.positions import Offsets, bounds, parse_position, resolve
from commands.shares.offsets import set_start_offsets, start_offsets
from console.changes import Plan
from console.pages.tables import Column, Table, table_of
from console.rendering import address
from console.visit import FIRST_MS, PageRequest
from protocol.types import TopicPartition

COLUMNS: Final = (
    Column("group", "Group"),
    Column("type", "Type"),
    Column("state", "State"),
    Column("members", "Members", True),
    Column("lag", "Lag", True),
    Column("lag_per_s", "Lag/s", True),
    Column("read_per_s", "Read/s", True),
)

CHART_LINES: Final = 6
"""Partitions of the lag's chart: those with the largest lag."""


async def listing(visit: PageRequest) -> Response:
    await visit.watched.ready(FIRST_MS)
    return visit.render("groups.html", _values(visit))


async def live(visit: PageRequest) -> Response:
    return visit.live("groups", lambda: None if visit.watched.sample is None else _values(visit))


def _values(visit: PageRequest) -> dict[str, object]:
    return {"table": _table(visit), "is_read": visit.watched.sample is not None}


def _table(visit: PageRequest) -> Table:
    shown, kind = visit.watched.shown, visit.query("type")
    rows = shown.groups if shown is not None else []
    chosen = [row for row in rows if row.get("group") is not None and (not kind or row.get("type") == kind)]
    return table_of(visit, "/groups", COLUMNS, chosen, kept={"type": kind})


def name_of(visit: PageRequest) -> str:
    """Returns the name of the group, a parameter because it can have any characters. Raises CommandError."""
    name = visit.form.get("name") or visit.request.query_params.get("name", "")
    if not name:
        raise misuse("name: expected the name of a group")
    return name


async def group(visit: PageRequest) -> Response:
    name = name_of(visit)
    description = await describe_group(visit.cluster, name)
    rows = await outcome(partition_rows(visit.cluster, description))
    problem = rows.message if isinstance(rows, CommandError) else ""
    listed: Sequence[Row] = [] if isinstance(rows, CommandError) else rows
    lags = [lag for row in listed if isinstance(lag := row.get("lag"), int)]
    values = {
        "group": description,
        "rows": listed,
        "problem": problem,
        "lag": sum(lags) if lags else None,
        "is_share": description.type == SHARE,
    }
    return visit.render("group.html", values)


async def lag_chart(visit: PageRequest) -> Response:
    """Returns the points of a group's chart: the partitions with the largest lag."""
    name = name_of(visit)
    points = [(point.now_ms // 1000, point.groups[name].lags) for point in visit.watched.lags if name in point.groups]
    latest = points[-1][1] if points else {}
    places = sorted(latest, key=lambda place: (-latest[place], place))[:CHART_LINES]
    series = [{"label": str(place), "y": [lags.get(place) for _, lags in points]} for place in places]
    return JSONResponse({"x": [at for at, _ in points] if series else [], "series": series})


# Changes.


def _commands_of(description: GroupDescription) -> str:
    return "share" if description.type == SHARE else "group"


async def reset(visit: PageRequest) -> Plan:
    """Plans new offsets of a group."""
    name = name_of(visit)
    description = await describe_group(visit.cluster, name)
    is_share = description.type == SHARE
    if is_share:
        before, unknown = await start_offsets(visit.cluster, name)
    else:
        before, unknown = await committed_offsets(visit.cluster, name), {}
    to, topic = visit.field("to"), visit.field("topic", required=False)
    after = _given(visit.form) or await _targets(visit, before, to, topic)

    async def carry_out() -> Sequence[Row]:
        write: Callable[[ClusterClient, str, Offsets], Awaitable[Mapping[TopicPartition, str]]]
        write = set_start_offsets if is_share else commit_offsets
        errors = await write(visit.cluster, name, after)
        return [{"partition": str(place), "error": error} for place, error in errors.items()]

    rows: list[Row] = [
        {
            "partition": str(place),
            "before": before.get(place),
            "after": offset,
            "change": offset - before[place] if place in before else None,
        }
        for place, offset in sorted(after.items())
    ]
    words = ["odradek", _commands_of(description), "reset", name]
    words += [f"--shift={to.removeprefix('shift ')}"] if to.startswith("shift ") else ["--to", to]
    note = "".join(f"{place} has no offset: {error}. " for place, error in sorted(unknown.items()))
    if description.members:
        note += f"The group has {len(description.members)} members; the cluster rejects a reset until they have left."
    return Plan(
        "group.reset",
        name,
        f"Reset group {name}",
        carry_out,
        address("/group", name=name),
        ("partition", "before", "after", "change"),
        rows,
        [*words, *(("--topic", topic) if topic else ()), "--yes"],
        fields={f"offset {place.topic} {place.partition}": str(offset) for place, offset in after.items()},
        note=note,
    )


def _given(form: Mapping[str, str]) -> Offsets:
    """Returns the offsets that were shown before. Raises CommandError."""
    offsets: Offsets = {}
    for key, value in form.items():
        word, _, place = key.partition(" ")
        if word == "offset":
            topic, _, index = place.rpartition(" ")
            if not (index.isdecimal() and value.isdecimal() and len(index) < 10 and len(value) < 20):
                raise misuse(f"{key[:60]}: expected an offset")
            offsets[TopicPartition(topic, int(index))] = int(value)
    return offsets


async def _targets(visit: PageRequest, before: Offsets, to: str, topic: str) -> Offsets:
    """Returns the new offsets of the group's partitions, or of all partitions of a topic. Raises CommandError."""
    if topic:
        described = await visit.cluster.topic(topic)
        places = [TopicPartition(topic, part.partition_index) for part in described.partitions]
    else:
        places = list(before)
    if not places:
        raise misuse("the group has no offsets yet: name a topic")
    if to.startswith("shift "):
        text = to.removeprefix("shift ").strip()
        if not (text.lstrip("+-").isdecimal() and len(text) < 19):
            raise misuse(f"{to[:40]}: expected a number of records, such as shift -100")
        limits = await bounds(visit.cluster, places)
        offsets = {
            place: max(limits.starts[place], min(before[place] + int(text), limits.ends[place]))
            for place in places
            if place in before and place not in limits.errors
        }
        errors = limits.errors
    else:
        try:
            position = parse_position(to, visit.cluster.clock.now_ms())
        except ValueError as error:
            raise misuse(f"to: {error}, or shift N") from None
        offsets, errors = await resolve(visit.cluster, dict.fromkeys(places, position))
    if errors:
        raise CommandError("; ".join(f"{place}: {error}" for place, error in errors.items()))
    return offsets


async def delete(visit: PageRequest) -> Plan:
    """Plans the deletion of a group."""
    name = name_of(visit)
    description = await describe_group(visit.cluster, name)

    async def carry_out() -> Sequence[Row]:
        return [await delete_group(visit.cluster, name)]

    return Plan(
        "group.delete",
        name,
        f"Delete group {name}",
        carry_out,
        "/groups",
        ("group", "type", "state", "members"),
        [{"group": name, "type": description.type, "state": description.state, "members": len(description.members)}],
        ["odradek", _commands_of(description), "delete", name, "--yes"],
        typed=name.strip(),
        note="Its offsets are lost.",
    )
