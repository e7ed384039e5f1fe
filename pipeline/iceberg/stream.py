"""stream: each micro-batch is a run of a load, published in the table of its topic.

The table's summary has the number of the last batch, so a batch that Spark repeats is skipped. Offsets that a load has
published meanwhile are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pipeline.cluster import Cluster
from pipeline.decode import Decoding
from pipeline.errors import PipelineError
from pipeline.iceberg.load import RUNS, TablePlace, TableRun, check_topic, condition
from pipeline.iceberg.table import Overtaken
from pipeline.load import run_id
from pipeline.manifest import StoreState
from pipeline.ranges import AcceptedLosses, ClusterOffsets, Range, check_topics
from pipeline.store import Hook
from pipeline.topics import TopicDescription


@dataclass(frozen=True, slots=True)
class TableSink:
    """The tables of a stream's topics."""

    cluster: Cluster
    place: TablePlace
    decoding: Decoding
    accepted: AcceptedLosses
    at: Hook

    def write(self, batch: DataFrame, query: str, number: int, ranges: Sequence[Range]) -> None:
        """Publishes a batch, topic by topic. Raises PipelineError."""
        topics = self.cluster.topics(sorted({span.topic for span in ranges})) if ranges else []
        for topic in topics:
            mine = [span for span in ranges if span.topic == topic.name]
            self._write(batch.where(f.col("topic") == topic.name), topic, mine, {query: number})

    def _write(
        self, batch: DataFrame, topic: TopicDescription, ranges: Sequence[Range], stream: dict[str, int]
    ) -> None:
        table = self.place.table(batch.sparkSession, topic.name)
        ((query, number),) = stream.items()
        first = self.cluster.start_offsets(topic.partition_keys())
        with self.place.catalog.exclusive(table.name):
            self.place.create(table)
            for _ in range(RUNS):
                head = table.head()
                if head.state.stream.get(query, -1) >= number:
                    return
                check_topic(table, head.state, topic)
                check_topics([topic], head.state.loaded(), self.accepted, ClusterOffsets(first, first, {}, {}))
                left = left_of(ranges, head.state, topic)
                self.at("planned")
                if not left:
                    return
                run = TableRun(table, head, run_id(), topic, left, self.at, stream)
                try:
                    run.write(batch.where(condition(left)), self.decoding)
                except Overtaken:
                    self.at("overtaken")
                else:
                    return
        raise PipelineError(f"{table.name}: other loads of {topic.name} were faster {RUNS} times; run it again")


def left_of(ranges: Sequence[Range], state: StoreState, topic: TopicDescription) -> list[Range]:
    """Returns the ranges without the offsets that were loaded already from this topic."""
    if state.topics.get(topic.name, topic.id) != topic.id:
        return list(ranges)
    return state.missing(ranges)
