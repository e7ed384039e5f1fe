"""An Iceberg table that changes only by whole runs: each is staged on a branch, checked, and published to main.

Publishing is a compare-and-swap. It moves main from the snapshot that the run began with to the run's own snapshot, in
one commit of the catalog, and fails if main has moved. So two runs can't both load the same offsets: a run that lost
reads the summary of the new snapshot, and loads what is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pipeline.errors import PipelineError
from pipeline.iceberg import summary
from pipeline.iceberg.catalog import NAME, Catalog
from pipeline.manifest import StoreState

MAIN: Final = "main"
LOADED_TAG: Final = "odradek-loaded"
"""The tag of the last run's snapshot: without it, an expiry of snapshots could remove the loaded offsets."""
STAGED_MS: Final = 86_400_000
"""Age at which an expiry of snapshots removes the branch of a run that was killed."""
ATTEMPTS: Final = 30
CREATIONS: Final = 5
BACKOFF_S: Final = 0.2

COLUMNS: Final = (
    "partition INT COMMENT 'partition of the topic', offset BIGINT, timestamp TIMESTAMP, timestamp_type INT, "
    "key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
PROPERTIES: Final = {
    "format-version": "2",
    "commit.retry.num-retries": "20",  # branches of other runs come and go meanwhile
    "write.distribution-mode": "none",  # a task has the records of one partition, in order: no shuffle
    "write.spark.fanout.enabled": "true",  # nor a sort by the table's partitions
}
UPSERT: Final = "odradek.upsert"
"""The property of a table that has the last record of each key."""
UPSERT_PROPERTIES: Final = {
    **PROPERTIES,
    UPSERT: "true",
    "write.merge.mode": "merge-on-read",  # a run writes its own records, not the files of the keys that it changes
    "write.delete.mode": "merge-on-read",
}


Change = Callable[[JavaObject], None]
"""A change of a table's metadata, which can be repeated."""


class Overtaken(PipelineError):
    """Another run published first, and changed what is loaded. The caller reads the table's state again."""


@dataclass(frozen=True, slots=True)
class Head:
    """The last snapshot of a branch, None if it has none, and the state that the last load left."""

    snapshot: int | None
    state: StoreState


@dataclass(frozen=True, slots=True)
class IcebergTable:
    """A table of a catalog by its name, NAMESPACE.TABLE; `branch` is where loads are published."""

    spark: SparkSession
    catalog: Catalog
    name: str
    branch: str = MAIN

    @property
    def quoted(self) -> str:
        return ".".join(f"`{part}`" for part in (NAME, *self.parts))

    @property
    def parts(self) -> tuple[str, str]:
        namespace, _, table = self.name.partition(".")
        return namespace, table

    @property
    def location(self) -> str:
        return str(self.java().location())

    def on(self, branch: str) -> str:
        """Returns the name of the table's branch, for SQL."""
        return self.quoted if branch == MAIN else f"{self.quoted}.`branch_{branch}`"

    def frame(self) -> DataFrame:
        """Returns the rows of the published branch; those of main, if a load has not created the branch yet."""
        return self.spark.table(self.on(self.branch if self.branch == MAIN or self.has(self.branch) else MAIN))

    def has(self, branch: str) -> bool:
        return self.java().refs().get(branch) is not None

    def exists(self) -> bool:
        return bool(self.spark.catalog.tableExists(self.quoted))

    def create(self, partition_by: str, *, upsert: bool = False) -> None:
        """Creates the table, unless it exists. `partition_by` are Iceberg's transforms, such as days(timestamp).

        The first loads of a database may all create its tables at once. Then all but one fail, and find them there.
        """
        for attempt in range(CREATIONS):
            try:
                self._create(partition_by, upsert=upsert)
                return
            except Py4JJavaError as error:
                if "UncheckedSQLException" not in str(error.java_exception) or attempt + 1 == CREATIONS:
                    raise
            time.sleep(BACKOFF_S)

    def _create(self, partition_by: str, *, upsert: bool) -> None:
        self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS `{NAME}`.`{self.parts[0]}`")
        chosen = UPSERT_PROPERTIES if upsert else PROPERTIES
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in chosen.items())
        partitioned = f"PARTITIONED BY ({partition_by})" if partition_by else ""
        self.spark.sql(
            f"CREATE TABLE IF NOT EXISTS {self.quoted} ({COLUMNS}) USING iceberg {partitioned} "
            f"TBLPROPERTIES ({properties})"
        )

    @property
    def is_upsert(self) -> bool:
        """True if the table has the last record of each key."""
        return str(self.java().properties().get(UPSERT)) == "true"

    def java(self) -> JavaObject:
        """Returns Iceberg's own table, with the metadata of now. Raises PipelineError if there is none."""
        jvm = self.spark._jvm
        assert jvm is not None, "a session without a JVM, as by Spark Connect"
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(self.spark._jsparkSession)
        utilities = jvm.org.apache.iceberg.spark.Spark3Util
        try:
            return utilities.loadIcebergTable(self.spark._jsparkSession, self.quoted)
        except (Py4JJavaError, PySparkException) as error:
            if "NoSuchTable" in str(error) or "cannot be found" in str(error):
                raise PipelineError(f"{self.catalog.uri} has no table {self.name}") from None
            raise

    def head(self) -> Head:
        """Returns the last snapshot and the loaded offsets. Raises PipelineError if these can't be known."""
        java = self.java()
        reference = java.refs().get(self.branch) or java.refs().get(MAIN)
        if reference is None:
            return Head(None, StoreState())
        last = java.snapshot(reference.snapshotId())
        return Head(last.snapshotId(), self._state(java, last))

    def _state(self, java: JavaObject, last: JavaObject) -> StoreState:
        snapshot: JavaObject | None = last
        while snapshot is not None:
            state = summary.from_summary(snapshot.summary(), self.name)
            if state is not None:
                return state
            parent = snapshot.parentId()
            if parent is None:
                return self._of_unloaded()
            snapshot = java.snapshot(parent)
        tag = java.refs().get(LOADED_TAG)
        tagged = None if tag is None else java.snapshot(tag.snapshotId())
        if tagged is None or tagged.sequenceNumber() > last.sequenceNumber():
            raise PipelineError(
                f"{self.name}: the snapshot with the loaded offsets has expired, and so has its tag {LOADED_TAG}. "
                "Load into another table"
            )
        return summary.from_summary(tagged.summary(), self.name) or StoreState()

    def _of_unloaded(self) -> StoreState:
        """Returns the state of a table that no load wrote. Raises PipelineError if it has rows."""
        if self.frame().isEmpty():
            return StoreState()
        raise PipelineError(f"{self.name} has rows, but no load wrote them. Load into another table")

    def stage(self, branch: str, head: Head) -> None:
        """Creates a run's own branch at the head. Readers of other branches don't see its records."""

        def create(java: JavaObject) -> None:
            managed = java.manageSnapshots()
            managed = (
                managed.createBranch(branch) if head.snapshot is None else managed.createBranch(branch, head.snapshot)
            )
            managed.setMaxRefAgeMs(branch, STAGED_MS).commit()

        self.committing(create)

    def added(self, branch: str) -> int:
        """Returns the number of records that the last snapshot of a branch added."""
        java = self.java()
        return int(java.snapshot(java.refs().get(branch).snapshotId()).summary().get("added-records") or 0)

    def mark(self, branch: str, properties: Mapping[str, str]) -> None:
        """Commits a snapshot without rows to a branch, with these properties."""
        append = self.java().newAppend().toBranch(branch)
        for name, value in properties.items():
            append = append.set(name, value)
        append.commit()

    def publish(self, branch: str, head: Head, run: str, expected: int | None = None) -> None:
        """Moves the published branch from the head to a run's branch, which disappears.

        Raises Overtaken, PipelineError.

        `expected` is the only snapshot that may be published; None is the last of the branch.
        """

        def swap(java: JavaObject) -> None:
            managed = java.manageSnapshots()  # this refreshes the metadata, and the commit fails if they change again
            reference = java.refs().get(self.branch)
            now = None if reference is None else reference.snapshotId()
            if now != head.snapshot and not (now is None and self.branch != MAIN):
                raise Overtaken(f"{self.name}: another run was faster")
            if java.refs().get(branch) is None:
                raise PipelineError(f"{self.name}: the branch {branch} of this run was removed; run it again")
            last = java.refs().get(branch).snapshotId()
            if expected not in (None, last):
                raise PipelineError(
                    f"{self.name}: the branch {branch} has changed since it was audited; audit it again"
                )
            managed = managed.fastForwardBranch(self.branch, branch).removeBranch(branch)
            if self.branch == MAIN:
                tagged = java.refs().get(LOADED_TAG) is not None
                managed = managed.replaceTag(LOADED_TAG, last) if tagged else managed.createTag(LOADED_TAG, last)
            managed.commit()

        try:
            self.committing(swap)
        except Py4JJavaError as error:
            if "CommitStateUnknown" not in str(error.java_exception) or self.head().state.run != run:
                raise

    def rebase(self, branch: str, head: Head, properties: Mapping[str, str]) -> None:
        """Stages the files that a branch added once more, on another head."""
        java = self.java()
        files = list(java.snapshot(java.refs().get(branch).snapshotId()).addedDataFiles(java.io()))
        self.drop(branch)
        self.stage(branch, head)
        append = self.java().newAppend().toBranch(branch)
        for file in files:
            append = append.appendFile(file)
        for name, value in properties.items():
            append = append.set(name, value)
        append.commit()

    def drop(self, branch: str) -> None:
        """Removes a run's branch, if it is there; an expiry of snapshots removes its files."""

        def remove(java: JavaObject) -> None:
            if java.refs().get(branch) is not None:
                java.manageSnapshots().removeBranch(branch).commit()

        self.committing(remove)

    def committing(self, change: Change) -> None:
        """Applies a change of metadata until no other commit comes between."""
        for attempt in range(ATTEMPTS):
            try:
                change(self.java())
                return
            except Py4JJavaError as error:
                if "CommitFailedException" not in str(error.java_exception) or attempt + 1 == ATTEMPTS:
                    raise
            time.sleep(BACKOFF_S)
