"""The contents of `odradek top`: samples of a cluster, rates between two of them, and a screen of lines. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from cli.times import show_time
from commands.groups.facts import GroupFacts
from commands.printing import Row, aligned, cell, error_of
from protocol.messages.metadata import MetadataResponseTopic
from protocol.types import TopicPartition

TOPIC_COLUMNS: Final = ("topic", "partitions", "records", "records_per_s")
GROUP_COLUMNS: Final = ("group", "type", "state", "members", "lag", "lag_per_s", "read_per_s")
CLIENT_COLUMNS: Final = ("client", "host", "group", "partitions")

LEAST_ROWS: Final = 2
"""Minimum number of rows of each table on a screen with too few lines."""

ELLIPSIS: Final = "…"


class ClusterSample(NamedTuple):
    """A cluster at one moment."""

    now_ms: int
    cluster: str
    brokers: int
    ends: dict[TopicPartition, int]
    """The end offset of each partition whose leader answered."""
    starts: dict[TopicPartition, int]
    groups: list[GroupFacts]
    unread: Mapping[TopicPartition, str] = MappingProxyType({})
    """The partitions whose leader didn't answer, with the errors."""
    unlisted: Mapping[int, str] = MappingProxyType({})
    """The brokers that didn't list the groups that they coordinate, with the errors."""
    failed: Mapping[str, str] = MappingProxyType({})
    """The groups that couldn't be read, with the errors."""
    topics: Sequence[MetadataResponseTopic] = ()
    """The metadata of all topics, internal ones too."""

    @property
    def places(self) -> set[TopicPartition]:
        """All partitions."""
        return {*self.ends, *self.unread}


class View(NamedTuple):
    """The tables of a screen."""

    head: Row
    topics: list[Row]
    groups: list[Row]
    clients: list[Row]

    def as_document(self) -> Row:
        """Returns all tables as one document, for a line of JSON."""
        return {**self.head, "topics": self.topics, "groups": self.groups, "clients": self.clients}


def view(before: ClusterSample | None, now: ClusterSample) -> View:
    """Returns the tables of a sample, with rates since the sample before. The busiest topics and the groups with the
    largest lag come first."""
    elapsed_s = (now.now_ms - before.now_ms) / 1000 if before is not None else 0.0
    head: Row = {
        "at": show_time(now.now_ms),
        "cluster": now.cluster,
        "brokers": now.brokers,
        "topics_total": len({place.topic for place in now.places}),
        "partitions_total": len(now.places),
        "groups_total": len(now.groups),
    }
    return View(head, _topics(before, now, elapsed_s), _groups(before, now, elapsed_s), _clients(now.groups))


def _topics(before: ClusterSample | None, now: ClusterSample, elapsed_s: float) -> list[Row]:
    rows: list[dict[str, object]] = []
    by_topic: dict[str, list[TopicPartition]] = {}
    for place in sorted(now.places):
        by_topic.setdefault(place.topic, []).append(place)
    for topic, places in by_topic.items():
        errors = [f"{place}: {now.unread[place]}" for place in places if place in now.unread]
        written = records = None
        if not errors:
            records = sum(now.ends[place] - now.starts.get(place, 0) for place in places)
            if before is not None:
                written = sum(now.ends[place] - before.ends[place] for place in places if place in before.ends)
        rows.append(
            {
                "topic": topic,
                "partitions": len(places),
                "records": records,
                "records_per_s": _rate(written, elapsed_s),
                **error_of("; ".join(dict.fromkeys(errors))),
            }
        )
    return sorted(rows, key=lambda row: -_number(row["records_per_s"]))


def _groups(before: ClusterSample | None, now: ClusterSample, elapsed_s: float) -> list[Row]:
    earlier = {} if before is None else {past.group.group: past for past in before.groups}
    rows: list[dict[str, object]] = []
    for facts in now.groups:
        was = earlier.get(facts.group.group)
        read = None
        if was is not None and facts.committed:
            read = sum(at - was.committed[place] for place, at in facts.committed.items() if place in was.committed)
        rows.append(
            {
                "group": facts.group.group,
                "type": facts.group.type,
                "state": facts.group.state,
                "members": len(facts.group.members),
                "lag": facts.lag,
                "lag_per_s": _rate(_difference(facts, was), elapsed_s),
                "read_per_s": _rate(read, elapsed_s),
                **error_of("; ".join(f"{place}: {error}" for place, error in facts.errors.items() if error)),
            }
        )
    rows += [{"group": group, "error": error} for group, error in now.failed.items()]
    rows += [{"group": None, "error": error} for error in now.unlisted.values()]
    return sorted(rows, key=lambda row: (-_number(row.get("lag")), str(row["group"] or "")))


def _difference(now: GroupFacts, before: GroupFacts | None) -> int | None:
    """Returns the growth of a group's lag; None if it is unknown."""
    if before is None or now.lag is None or before.lag is None:
        return None
    return now.lag - before.lag


def _clients(groups: Iterable[GroupFacts]) -> list[Row]:
    rows: list[Row] = [
        {"client": member.client, "host": member.host, "group": facts.group.group, "partitions": len(member.partitions)}
        for facts in groups
        for member in facts.group.members
    ]
    return sorted(rows, key=lambda row: (str(row["client"]), str(row["group"])))


def _rate(count: int | None, elapsed_s: float) -> float | None:
    """Returns a rate per second; None if there is no earlier sample."""
    return None if count is None or elapsed_s <= 0 else round(count / elapsed_s, 1)


def _number(value: object) -> float:
    return value if isinstance(value, int | float) else 0.0


def screen(shown: View, width: int, height: int) -> list[str]:
    """Returns the lines of a screen: at most `height` lines of at most `width` characters."""
    head = shown.head
    first = (
        f"{head['cluster']}  {head['at']}  {head['brokers']} brokers, {head['topics_total']} topics, "
        f"{head['partitions_total']} partitions, {head['groups_total']} groups"
    )
    tables = ((TOPIC_COLUMNS, shown.topics), (GROUP_COLUMNS, shown.groups), (CLIENT_COLUMNS, shown.clients))
    room = rows_for([len(rows) for _, rows in tables], height - 1 - 2 * len(tables))
    lines = [first]
    for (columns, rows), count in zip(tables, room, strict=True):
        lines += ["", *table(columns, rows[:count], len(rows))]
    return [line if len(line) <= width else line[: max(width - 1, 0)] + ELLIPSIS for line in lines[: max(height, 1)]]


def table(columns: Sequence[str], rows: Sequence[Row], total: int) -> list[str]:
    """Returns a table's lines. If not all rows are shown, the title of the first column has their number."""
    if any(row.get("error") for row in rows):
        columns = (*columns, "error")
    titles = [column.replace("_per_s", "/s").replace("_", " ").upper() for column in columns]
    if len(rows) < total:
        titles[0] += f" ({len(rows)} of {total})"
    cells = [[cell(row.get(column)) for column in columns] for row in rows]
    numeric = [column for column, name in enumerate(columns) if any(_is_number(row.get(name)) for row in rows)]
    return aligned([titles, *cells], numeric)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def rows_for(counts: Sequence[int], room: int) -> list[int]:
    """Returns the number of rows that each table shows: all of them if they fit, else an equal share of the lines. A
    table that needs less than its share leaves the rest to the others."""
    shares = [0] * len(counts)
    left = max(room, LEAST_ROWS * len(counts))
    while left > 0 and any(share < count for share, count in zip(shares, counts, strict=True)):
        for index, count in enumerate(counts):
            if shares[index] < count and left > 0:
                shares[index] += 1
                left -= 1
    return shares
