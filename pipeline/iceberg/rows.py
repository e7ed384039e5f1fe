"""The rows of several topics' tables, for jobs that read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pipeline.errors import PipelineError
from pipeline.iceberg.load import RECORD, TablePlace, dead_letters_of
from pipeline.iceberg.table import MAIN, IcebergTable
from pipeline.manifest import StoreState
from pipeline.topics import PartitionName


@dataclass(frozen=True)
class Tables:
    """The tables of topics."""

    spark: SparkSession
    place: TablePlace
    topics: Sequence[str]

    def table(self, topic: str) -> IcebergTable:
        return self.place.table(self.spark, topic)

    @cached_property
    def state(self) -> StoreState:
        """The offsets that the existing tables have, as one state."""
        tables = [self.table(topic) for topic in self.topics]
        states = [table.head().state for table in tables if table.exists()]
        return StoreState(
            topics={name: topic_id for state in states for name, topic_id in state.topics.items()},
            partitions={name: numbers for state in states for name, numbers in state.partitions.items()},
            covered={key: spans for state in states for key, spans in state.covered.items()},
        )

    def rows(self) -> DataFrame:
        """Returns the tables' records, with their topics. Raises PipelineError if a table or its branch doesn't exist,
        or if two topics have the same table."""
        names = {self.table(topic).name for topic in self.topics}
        if len(names) < len(set(self.topics)):
            raise PipelineError(f"several topics have the same table: {', '.join(self.topics)}")
        return reduce(DataFrame.unionByName, (_of(self.table(topic), topic) for topic in self.topics))

    def part(self, key: PartitionName) -> DataFrame:
        """Returns the records of a partition, with the dead letters, because these have the records' bytes."""
        table = self.table(key.topic)
        rows, dead = _of(table, key.topic), dead_letters_of(table)
        rows = rows.unionByName(_of(dead, key.topic)) if dead.exists() else rows
        return rows.where(f.col("partition") == key.partition)


def _of(table: IcebergTable, topic: str) -> DataFrame:
    table.java()  # an error if there is no table
    if table.branch != MAIN and not table.has(table.branch):
        raise PipelineError(f"{table.name} has no branch {table.branch}: load into it first")
    return table.frame().select(f.lit(topic).alias("topic"), *RECORD)
