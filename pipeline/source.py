"""Topics and stores as data frames of one schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pipeline.cluster import Cluster
from pipeline.errors import CorruptBatch, LostRange, PipelineError, Unreachable
from pipeline.manifest import File
from pipeline.ranges import Range, to_json
from pipeline.store import QUARANTINE

RECORD = (
    "topic string, partition int, offset bigint, timestamp timestamp, timestamp_type int, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>"
)
COLUMNS = ("topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")

POLL_TIMEOUT_MS = 30_000
"""Time without an answer after which a task gives up. A broker answers a fetch in half a second."""


def kafka_options(cluster: Cluster, options: Mapping[str, str]) -> dict[str, str]:
    """Returns the options of every reader of the connector; `options` override the others."""
    return {
        "kafka.bootstrap.servers": cluster.bootstrap,
        "kafka.isolation.level": "read_committed",
        "kafka.default.api.timeout.ms": str(POLL_TIMEOUT_MS),
        "kafkaConsumer.pollTimeoutMs": str(POLL_TIMEOUT_MS),
        "fetchOffset.numRetries": "1",
        "includeHeaders": "true",
        "failOnDataLoss": "true",
        **options,
    }


def read_topics(
    spark: SparkSession, cluster: Cluster, ranges: Sequence[Range], options: Mapping[str, str] | None = None
) -> DataFrame:
    """Returns the committed records of these ranges, with one task per range, or more with `minPartitions` or
    `maxRecordsPerPartition`.
    """
    if not ranges:
        return spark.createDataFrame([], RECORD)
    assigned: dict[str, list[int]] = {}
    for span in ranges:
        assigned.setdefault(span.topic, []).append(span.partition)
    reader = spark.read.format("kafka").options(
        **kafka_options(cluster, options or {}),
        assign=str(assigned).replace("'", '"'),
        startingOffsets=to_json({span.key: span.start for span in ranges}),
        endingOffsets=to_json({span.key: span.end for span in ranges}),
    )
    return as_records(reader.load())


def as_records(frame: DataFrame) -> DataFrame:
    """Returns the connector's records with this package's column names."""
    return frame.withColumnRenamed("timestampType", "timestamp_type").select(*COLUMNS)


def read_files(spark: SparkSession, root: Path, files: Iterable[File]) -> DataFrame:
    """Returns the records of a store's files."""
    by_base: dict[Path, list[str]] = {}
    for file in files:
        by_base.setdefault(root / QUARANTINE if file.quarantined else root, []).append(str(root / file.path))
    frame = None
    for base, paths in by_base.items():
        folder_frame = spark.read.option("basePath", str(base)).parquet(*paths)
        frame = folder_frame if frame is None else frame.unionByName(folder_frame, allowMissingColumns=True)
    return spark.createDataFrame([], RECORD) if frame is None else frame


def with_folders(frame: DataFrame) -> DataFrame:
    """Returns the frame with the columns that name the folders of files."""
    return frame.withColumn("date", f.date_format("timestamp", "yyyy-MM-dd")).withColumn(
        "hour", f.date_format("timestamp", "HH")
    )


AT = re.compile(r"(?:partition|TopicPartition:?) ([\w.-]+)-(\d+)")
OURS = re.compile(r"^pipeline\.errors\.\w+: (.+)$", re.MULTILINE)
"""The message of a PipelineError that a Python worker raised."""
OFFSET = re.compile(r"offset (\d+)")


def explained(error: Exception, cluster: Cluster, ranges: Sequence[Range]) -> PipelineError:
    """Returns Spark's failure as an error with topic, partition and offset."""
    if isinstance(error, PipelineError):
        return error
    text = str(error)
    if own := OURS.search(text):
        return PipelineError(own[1])
    place = AT.search(text)
    at = f"{place[1]}-{place[2]}" if place else ""
    mine = [span for span in ranges if str(span.key) == at] or list(ranges)
    offsets = "; ".join(map(str, mine))
    offset = OFFSET.search(text)
    where = f"{at} offset {offset[1]}" if place and offset else offsets
    if "CorruptRecordException" in text or "is corrupt" in text or "Record batch for partition" in text:
        return CorruptBatch(f"{where}: a batch is corrupt: {_line(text, 'corrupt')}. Requested: {offsets}")
    if "OffsetOutOfRange" in text or "out of range" in text or "data may have been lost" in text.lower():
        return LostRange(f"{where}: retention or a deletion removed it during the read. Requested: {offsets}")
    if "TimeoutException" in text or "Cannot fetch record" in text or "disconnected" in text:
        return Unreachable(f"{cluster.bootstrap} stopped answering at {where}. Requested: {offsets}")
    return PipelineError(f"{offsets}: {_line(text, 'Exception')}")


def _line(text: str, word: str) -> str:
    """Returns the line that says most about an error: the last `Caused by` with the word; without one the first line
    with the word, or the first of all."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    caused = [line for line in lines if line.startswith("Caused by") and word in line]
    lines_of_cause = (caused or [line for line in lines if word in line] or lines or [""])[-1 if caused else 0]
    return lines_of_cause.removeprefix("Caused by: ")[:300]


SPARK_FAILURES = (Py4JJavaError, PySparkException)
