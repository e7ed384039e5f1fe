"""The SparkSession of a job, with the Kafka connector, and with this package on its workers. It is embedded unless a
master is named.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

CONNECTORS = "4.0.0"
"""The newest version whose dependencies are all in Maven Central; it works with every PySpark 4.0."""
PACKAGES = (
    f"org.apache.spark:spark-sql-kafka-0-10_2.13:{CONNECTORS}",
    f"org.apache.spark:spark-avro_2.13:{CONNECTORS}",
)
EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
"""The SQL of Iceberg: branches, row-level commands, procedures."""
EMBEDDED = "local[*]"
SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""The variable that spark-submit sets: it has started Spark, with its own master and jars."""

SETTINGS: Mapping[str, str] = {
    "spark.jars.packages": ",".join(PACKAGES),
    "spark.jars.excludes": "org.slf4j:slf4j-api",  # Spark brings its own
    "spark.sql.session.timeZone": "UTC",  # so that folders by date and hour are the same wherever a job runs
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # a topic may have the name 2026
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.speculation": "false",  # a second copy of a task would write its records twice
    "spark.python.authenticate.socketTimeout": "60s",
}


def start(
    app: str, master: str | None = None, settings: Mapping[str, str] | None = None, packages: Sequence[str] = ()
) -> SparkSession:
    """Starts Spark, or returns the session of this process. In embedded mode, Python workers run this interpreter.

    `packages` are further jars of Maven Central, as Spark needs them for Iceberg. If spark-submit has started the
    process, its own options name the jars, and the master and Python unless they are given here.
    """
    builder = SparkSession.builder.appName(f"odradek {app}")
    if SUBMITTED not in os.environ:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        master = master or EMBEDDED
    if master is not None:
        builder = builder.master(master)
    further = {"spark.jars.packages": ",".join((*PACKAGES, *packages)), "spark.sql.extensions": EXTENSIONS}
    for name, value in {**SETTINGS, **(further if packages else {}), **(settings or {})}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.addPyFile(str(_packed()))
    return spark


def _packed() -> Path:
    """Returns this package as a zip file, for Spark's Python workers.

    Its name depends on its content, because Spark rejects a different file with a known name.
    """
    here = Path(__file__).resolve().parent
    sources = {f"{here.name}/{file.relative_to(here)}": file.read_bytes() for file in sorted(here.rglob("*.py"))}
    content = hashlib.sha256(b"".join(name.encode() + text for name, text in sources.items())).hexdigest()
    folder = tempfile.mkdtemp(prefix="odradek-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    packed = Path(folder) / f"pipeline-{content[:12]}.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in sources.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return packed
