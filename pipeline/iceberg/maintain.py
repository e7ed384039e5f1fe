"""maintain: merges small files of tables, rewrites manifests, expires snapshots, removes orphan files.

It may run beside loads: a load publishes its files on the head of main, whatever that is. The loaded offsets are copied
into the summary of a new snapshot, so that the snapshots of the merged files can expire.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from pipeline.errors import PipelineError
from pipeline.iceberg.catalog import NAME
from pipeline.iceberg.load import BRANCH_PREFIX, TablePlace, dead_letters_of
from pipeline.iceberg.summary import LOADED, to_json
from pipeline.iceberg.table import IcebergTable, Overtaken
from pipeline.load import run_id

SMALL: Final = 0.75
"""Share of the target size below which a file is small, as in Iceberg's rewrite."""
DATA_FILE: Final = 0
"""The content of a data file in Iceberg's metadata; others are files of deletes."""
MIN_FILE_BYTES: Final = 1024 * 1024
DAY_MS: Final = 86_400_000
ORDER: Final = "partition ASC NULLS LAST, offset ASC NULLS LAST"


@dataclass(frozen=True, slots=True)
class MaintainConfig:
    """The options of the job. `now_ms` is the time from which ages are counted."""

    topics: tuple[str, ...]
    now_ms: int
    keep_snapshots_ms: int
    keep_orphans_ms: int
    file_bytes: int
    dry_run: bool = False


class Figures(NamedTuple):
    """The figures of a table."""

    data_files: int
    small_files: int
    """Small data files that share their partition with others, so that they can be merged."""
    delete_files: int
    bytes: int
    """Size of the files of all snapshots."""
    manifests: int
    snapshots: int
    orphans: int


class MaintainOutcome(NamedTuple):
    """A table's figures before and after. A dry run estimates those after."""

    table: str
    before: Figures
    after: Figures


def maintain(spark: SparkSession, config: MaintainConfig, place: TablePlace) -> list[MaintainOutcome]:
    """Maintains the tables of topics, and of their dead letters. Raises PipelineError if there is no table."""
    if config.keep_orphans_ms < DAY_MS:
        raise PipelineError(
            "--keep-orphans: at least 1d, because a load in progress has files that no snapshot has yet"
        )
    if config.file_bytes < MIN_FILE_BYTES:
        raise PipelineError("--file-mib: at least 1")
    done = []
    tables = (place.table(spark, topic) for topic in config.topics)
    for table in {table.name: table for table in tables}.values():
        table.java()  # an error if there is no table
        dead = dead_letters_of(table)
        with place.catalog.exclusive(table.name):  # a load holds this lock for its dead letters, too
            done += [TableMaintenance(each, config).run() for each in (table, dead) if each.exists()]
    return done


@dataclass(frozen=True, slots=True)
class TableMaintenance:
    """The maintenance of one table."""

    table: IcebergTable
    config: MaintainConfig

    def run(self) -> MaintainOutcome:
        """Returns the figures before and after. A dry run changes nothing."""
        before = self.figures()
        if self.config.dry_run:
            return MaintainOutcome(self.table.name, before, self.estimated(before))
        size = f"'target-file-size-bytes', '{self.config.file_bytes}', 'min-input-files', '2'"
        deletes = "'delete-file-threshold', '1', 'remove-dangling-deletes', 'true'"
        self.call(
            "rewrite_data_files", f"strategy => 'sort', sort_order => '{ORDER}', options => map({size}, {deletes})"
        )
        self.call("rewrite_manifests", "use_caching => false")
        self.retag()
        self.call("expire_snapshots", f"older_than => {moment(self.expiry_ms)}, retain_last => 1")
        self.orphans(dry_run=False)
        return MaintainOutcome(self.table.name, before, self.figures())

    def retag(self) -> None:
        """Moves the tag of the last load to a new snapshot with the same loaded offsets.

        Without this, the tag keeps the merged files. If a load publishes meanwhile, its own snapshot has the tag.
        """
        head, run = self.table.head(), run_id()
        branch = f"{BRANCH_PREFIX}{run}"
        self.table.stage(branch, head)
        try:
            self.table.mark(branch, {LOADED: to_json(head.state)})
            self.table.publish(branch, head, run)
        except Overtaken:
            self.table.drop(branch)

    @property
    def expiry_ms(self) -> int:
        return self.config.now_ms - self.config.keep_snapshots_ms

    def call(self, procedure: str, arguments: str) -> list[Row]:
        name = self.table.quoted.replace("'", "\\'")
        sql = f"CALL `{NAME}`.system.{procedure}(table => '{name}', {arguments})"
        return self.table.spark.sql(sql).collect()

    def orphans(self, *, dry_run: bool) -> int:
        """Removes the files that no snapshot has; a dry run doesn't. Returns their number."""
        older = moment(self.config.now_ms - self.config.keep_orphans_ms)
        return len(self.call("remove_orphan_files", f"older_than => {older}, dry_run => {str(dry_run).lower()}"))

    def figures(self) -> Figures:
        is_data = f.col("content") == DATA_FILE
        files = self.meta("files").agg(f.count_if(is_data).alias("data"), f.count_if(~is_data).alias("deletes"))
        stored = self.meta("all_files").groupBy("file_path").agg(f.max("file_size_in_bytes").alias("size"))
        (counts,) = files.collect()
        return Figures(
            counts["data"],
            sum(row["files"] for row in self.small()),
            counts["deletes"],
            int(stored.agg(f.sum("size")).collect()[0][0] or 0),
            self.meta("manifests").count(),
            self.meta("snapshots").count(),
            self.orphans(dry_run=True),
        )

    def meta(self, name: str) -> DataFrame:
        """Returns one of Iceberg's tables about the table."""
        return self.table.spark.table(f"{self.table.quoted}.{name}")

    def small(self) -> list[Row]:
        """Returns number and size of the small data files, by partition, if there is more than one."""
        is_small = f.col("file_size_in_bytes") < SMALL * self.config.file_bytes
        files = self.meta("files").where((f.col("content") == DATA_FILE) & is_small)
        partition = ["partition"] if "partition" in files.columns else []
        sums = files.groupBy(*partition).agg(f.count("*").alias("files"), f.sum("file_size_in_bytes").alias("size"))
        return sums.where("files > 1").select("files", "size").collect()

    def estimated(self, before: Figures) -> Figures:
        """Returns the figures after a run. The bytes that an expiry frees are not known before it."""
        is_young = f.col("committed_at") >= f.expr(moment(self.expiry_ms))
        merged = sum(math.ceil(row["size"] / self.config.file_bytes) for row in self.small())
        return before._replace(
            data_files=before.data_files - before.small_files + merged,
            small_files=0,
            delete_files=0,
            snapshots=self.meta("snapshots").where(is_young).count() + 1,
            orphans=0,
        )


def moment(ms: int) -> str:
    """Returns a time as SQL."""
    return f"TIMESTAMP '{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S.%f}'"
