"""load --dead-letters: decodes a table's dead letters again, and moves those that can be decoded now into the table.

They are published in the table first, and deleted from the dead letters after that. A run that ends in between leaves
them in both; the next run only deletes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pipeline.decode import DATA, REASON, Decoding
from pipeline.errors import PipelineError
from pipeline.iceberg.load import BRANCH_PREFIX, RECORD, RUNS, dead_letters_of, decoded_for
from pipeline.iceberg.schema import fitted
from pipeline.iceberg.summary import summary_of
from pipeline.iceberg.table import Head, IcebergTable, Overtaken
from pipeline.load import LoadOutcome, run_id
from pipeline.store import Hook, nowhere

PLACE: Final = ["partition", "offset"]
REMOVE_SQL: Final = """
MERGE INTO {target} there USING odradek_reprocessed gone
ON there.partition = gone.partition AND there.offset = gone.offset WHEN MATCHED THEN DELETE
"""

Step = Callable[[], int]


def reprocess(table: IcebergTable, decoding: Decoding, at: Hook = nowhere) -> LoadOutcome:
    """Moves the dead letters that can be decoded into the table; returns how many, and how many are left.

    Raises PipelineError.
    """
    dead = dead_letters_of(table)
    if not table.exists() or not dead.exists():
        raise PipelineError(f"{table.catalog.uri} has no table {dead.name}, so there are no dead letters")
    if table.is_upsert:
        raise PipelineError(
            f"{table.name} has the last record of each key: a dead letter may be older. Load into another --table"
        )
    run = Reprocessing(table, dead, run_id())
    with table.catalog.exclusive(table.name):
        moved = run.repeated(lambda: run.move(decoding))
        at("moved")
        run.repeated(run.remove)
    return LoadOutcome(run.run, [], moved, dead.frame().count(), 0)


@dataclass(frozen=True, slots=True)
class Reprocessing:
    """One run: its table, and the table's dead letters."""

    table: IcebergTable
    dead: IcebergTable
    run: str

    def repeated(self, step: Step) -> int:
        """Takes a step, again if another run was faster. Raises PipelineError."""
        for _ in range(RUNS):
            try:
                return step()
            except Overtaken:
                continue
        raise PipelineError(f"{self.table.name}: other runs were faster {RUNS} times; run it again")

    def move(self, decoding: Decoding) -> int:
        """Publishes the dead letters that can be decoded in the table. Returns their number. Raises Overtaken."""
        head = self.table.head()
        letters = self.dead.frame().join(self.table.frame().select(*PLACE), PLACE, "left_anti").select(*RECORD)
        records = decoded_for(self.table, letters, decoding)
        if REASON in records.columns:
            records = records.where(f.col(REASON).isNull()).drop(REASON)
        records = records.select(*RECORD, *([DATA] if DATA in records.columns else []))
        if records.isEmpty():
            return 0
        return self._published(head, fitted(self.table, records))

    def remove(self) -> int:
        """Removes the dead letters that the table has, and returns their number. Raises Overtaken."""
        head = self.dead.head()
        there = self.table.frame().select(*PLACE)
        gone = self.dead.frame().join(there, PLACE, "left_semi").select(*PLACE)
        count = gone.count()
        if not count:
            return 0
        gone.createOrReplaceTempView("odradek_reprocessed")
        self.dead.stage(self.branch, head)
        try:
            self.dead.spark.sql(REMOVE_SQL.format(target=self.dead.on(self.branch)))
            self.dead.mark(self.branch, self._summary(head))
            self.dead.publish(self.branch, head, self.run)
        except BaseException:
            self.dead.drop(self.branch)
            raise
        return count

    @property
    def branch(self) -> str:
        return f"{BRANCH_PREFIX}{self.run}"

    def _summary(self, head: Head) -> dict[str, str]:
        return summary_of(self.run, [], replace(head.state, sequence=head.state.sequence + 1, run=self.run))

    def _published(self, head: Head, records: DataFrame) -> int:
        table = self.table
        table.stage(self.branch, head)
        try:
            options = {f"snapshot-property.{name}": value for name, value in self._summary(head).items()}
            records.writeTo(table.on(self.branch)).options(**options, **{"check-ordering": "false"}).append()
            count = table.added(self.branch)
            table.publish(self.branch, head, self.run)
        except BaseException:
            table.drop(self.branch)
            raise
        return count
