"""The session and the output of jobs."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping

from pyspark.sql import SparkSession

from pipeline import session
from pipeline.errors import PipelineError
from pipeline.iceberg.catalog import Catalog
from pipeline.iceberg.load import TablePlace
from pipeline.iceberg.table import MAIN
from pipeline.settings import SPARK


def table_place(options: Namespace) -> TablePlace | None:
    """Returns the place of Iceberg tables that the options name; None without --catalog. Raises PipelineError."""
    if options.catalog is None:
        named = [name for name in ("warehouse", "table", "branch") if getattr(options, name) is not None]
        if named:
            raise PipelineError(f"--{named[0]} is for Iceberg tables, which need --catalog")
        return None
    catalog = Catalog.of(options.catalog, options.warehouse)
    transforms = getattr(options, "partition_by", "")
    return TablePlace(catalog, options.table, transforms, options.branch or MAIN)


def with_catalog(
    job: str, master: str | None, settings: Mapping[str, dict[str, str]], place: TablePlace
) -> SparkSession:
    """Starts the job's Spark session, with the catalog of its tables."""
    started = session.start(job, master, settings[SPARK], place.catalog.packages)
    return place.catalog.attached(started, settings[SPARK])


def spark_of(job: str, master: str | None, settings: Mapping[str, dict[str, str]]) -> SparkSession:
    """Starts the job's Spark session."""
    return session.start(job, master, settings[SPARK])


def say(line: str) -> None:
    """Prints a line of a job's output."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
