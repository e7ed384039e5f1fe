"""`odradek topic analyze`: what a topic contains, from its records."""

from __future__ import annotations

from typing import Final

from commands.printing import Row
from commands.records.fetching import PartitionReader
from commands.records.figures import PartitionFigures, summary
from commands.records.positions import START, Lookup, bounds, resolve
from commands.session import Session
from protocol.types import TopicPartition

COLUMNS: Final = ("partition", "records", "bytes", "records_per_s", "average_bytes", "99_percent_under",
                  "batch_records", "stored_share", "codecs", "keys", "keyless", "tombstones")  # fmt: skip


async def analyze(session: Session) -> None:
    """Reads records, and shows a row for each partition and one for the topic."""
    options = session.options
    topic = await session.cluster.topic(options.topic)
    places = [TopicPartition(options.topic, partition.partition_index) for partition in topic.partitions]
    start = session.position("--from", options.start) if options.start else START
    starts = await resolve(session.cluster, dict.fromkeys(places, start))
    if options.until:
        ends = await resolve(session.cluster, dict.fromkeys(places, session.position("--until", options.until)))
    else:
        limits = await bounds(session.cluster, places)
        ends = Lookup(limits.ends, limits.errors)
    errors = starts.errors | ends.errors
    figures = {place: PartitionFigures() for place in places if place not in errors}
    await _read(session, figures, starts.offsets, ends.offsets)
    rows: list[Row] = [
        {"partition": place.partition, **(summary([figures[place]]) if place in figures else {"error": errors[place]})}
        for place in places
    ]
    head: Row = {"topic": options.topic, **summary(figures.values())}
    session.output.document(
        {**head, "partitions": rows},
        (
            (f"topic {options.topic}", ("figure", "value"), _pairs(head)),
            ("partitions", COLUMNS, rows),
        ),
    )


def _pairs(head: Row) -> list[Row]:
    return [{"figure": name.replace("_", " "), "value": value} for name, value in head.items() if name != "topic"]


async def _read(
    session: Session,
    figures: dict[TopicPartition, PartitionFigures],
    starts: dict[TopicPartition, int],
    ends: dict[TopicPartition, int],
) -> None:
    left = session.options.count
    reader = PartitionReader(session.cluster, observe=lambda place, buffer: figures[place].add_batches(buffer))
    reader.positions |= {place: starts[place] for place in figures if starts[place] < ends[place]}
    try:
        while reader.positions and left != 0:
            async for place, records, next_offset in reader.poll():
                for record, _ in records:
                    if record.offset < ends[place] and left != 0:
                        figures[place].add(record)
                        left = None if left is None else left - 1
                if next_offset >= ends[place]:
                    reader.positions.pop(place, None)
    finally:
        await reader.close()
