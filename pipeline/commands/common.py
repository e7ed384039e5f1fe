"""The session and the output of jobs."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

from pipeline import session
from pipeline.settings import SPARK


def spark_of(job: str, master: str | None, settings: Mapping[str, dict[str, str]]) -> SparkSession:
    """Starts the job's Spark session."""
    return session.start(job, master, settings[SPARK])


def say(line: str) -> None:
    """Prints a line of a job's output."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
