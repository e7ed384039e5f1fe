"""The session and the output of jobs."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import Final

from pyspark.sql import SparkSession

from pipeline import session
from pipeline.errors import PipelineError
from pipeline.iceberg.catalog import Catalog
from pipeline.iceberg.load import TablePlace
from pipeline.iceberg.table import MAIN
from pipeline.settings import SPARK

TABLE_OPTIONS: Final = ("warehouse", "table", "branch", "partition_by", "upsert", "dead_letters", "publish")
"""The options of Iceberg tables, some of which a job may not have."""


def table_place(options: Namespace) -> TablePlace | None:
    """Returns the place of Iceberg tables that the options name; None without --catalog. Raises PipelineError."""
    if options.catalog is None:
        named = [name for name in TABLE_OPTIONS if getattr(options, name, None) not in (None, False)]
        if named:
            raise PipelineError(f"--{named[0].replace('_', '-')} is for Iceberg tables, which need --catalog")
        return None
    catalog = Catalog.of(options.catalog, options.warehouse)
    transforms, upsert = getattr(options, "partition_by", None), getattr(options, "upsert", False)
    return TablePlace(catalog, options.table, transforms, getattr(options, "branch", None) or MAIN, upsert)


def session_of(
    job: str, master: str | None, settings: Mapping[str, dict[str, str]], place: TablePlace | None = None
) -> SparkSession:
    """Starts the job's Spark session, with the catalog of its tables if it has some."""
    if place is None:
        return session.start(job, master, settings[SPARK])
    started = session.start(job, master, settings[SPARK], place.catalog.packages)
    return place.catalog.attached(started, settings[SPARK])


def say(line: str) -> None:
    """Prints a line of a job's output."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
