"""The figures of a load as Prometheus's text: records, offsets, lag, bytes, spill, and the skew of tasks."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from pipeline.cluster import Cluster
from pipeline.errors import PipelineError
from pipeline.load import LoadOutcome

PREFIX: Final = "odradek_pipeline"
QUANTILES: Final = (0.5, 0.95, 1.0)


class Sample(NamedTuple):
    """A value of a metric, with its labels."""

    name: str
    labels: Mapping[str, str]
    value: float


HELP: Final = {
    "records": "Records that the last run loaded.",
    "dead_letters": "Values that the last run could not decode.",
    "seconds": "Duration of the last run, without the start of Spark.",
    "finished_timestamp_seconds": "When the last run ended.",
    "loaded_offset": "Offset after the last one that the run loaded.",
    "lag": "Offsets of the topic after the last one that the run loaded.",
    "input_bytes": "Bytes that tasks read, without those of the Kafka connector, which does not count them.",
    "output_bytes": "Bytes that tasks wrote.",
    "shuffle_bytes": "Bytes that tasks wrote for other tasks.",
    "spilled_bytes": "Bytes that tasks wrote to disk because memory was short.",
    "task_seconds": "Quantiles of the duration of the tasks of the run's longest stage: their ratio is the skew.",
}
"""All metrics are gauges of the last run."""


def metrics_text(spark: SparkSession, cluster: Cluster, done: Mapping[str, LoadOutcome], seconds: float) -> str:
    """Returns the metrics of a run of `load`. `done` has the outcomes by table or store."""
    samples = [*of_outcomes(done), *of_lag(cluster, done), *of_tasks(spark)]
    samples += [Sample("seconds", {}, seconds), Sample("finished_timestamp_seconds", {}, time.time())]
    return "".join(_lines(name, [sample for sample in samples if sample.name == name]) for name in HELP)


def write_text(path: Path, text: str) -> None:
    """Replaces a file at once: a collector never reads half of it. Raises PipelineError."""
    made = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        made.write_text(text)
        made.rename(path)
    except OSError as error:
        raise PipelineError(f"--metrics-file {path}: {error.strerror}; the records are loaded") from None


def _lines(name: str, samples: list[Sample]) -> str:
    head = f"# HELP {PREFIX}_{name} {HELP[name]}\n# TYPE {PREFIX}_{name} gauge\n"
    return head + "".join(f"{PREFIX}_{name}{_labels(sample.labels)} {sample.value:.17g}\n" for sample in samples)


def _labels(labels: Mapping[str, str]) -> str:
    escaped = {
        key: value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for key, value in labels.items()
    }
    return "{" + ",".join(f'{key}="{value}"' for key, value in escaped.items()) + "}" if labels else ""


def of_outcomes(done: Mapping[str, LoadOutcome]) -> Iterator[Sample]:
    for place, outcome in done.items():
        yield Sample("records", {"place": place}, outcome.records)
        yield Sample("dead_letters", {"place": place}, outcome.quarantined)


def of_lag(cluster: Cluster, done: Mapping[str, LoadOutcome]) -> Iterator[Sample]:
    ranges = [span for outcome in done.values() for span in outcome.ranges]
    ends = cluster.end_offsets([span.key for span in ranges])
    for span in ranges:
        labels = {"topic": span.topic, "partition": str(span.partition)}
        yield Sample("loaded_offset", labels, span.end)
        yield Sample("lag", labels, max(0, ends[span.key] - span.end))


def of_tasks(spark: SparkSession) -> Iterator[Sample]:
    """Yields what Spark's own listener has seen in all stages of this process."""
    stages = _stages(spark)
    sums = {
        "input_bytes": "inputBytes",
        "output_bytes": "outputBytes",
        "shuffle_bytes": "shuffleWriteBytes",
        "spilled_bytes": "diskBytesSpilled",
    }
    for name, field in sums.items():
        yield Sample(name, {}, sum(getattr(stage, field)() for stage in stages))
    if stages:
        longest = max(stages, key=lambda stage: int(stage.executorRunTime()))
        times = _task_times(spark, longest)
        for quantile, milliseconds in zip(QUANTILES, times, strict=False):
            yield Sample("task_seconds", {"quantile": f"{quantile:g}"}, milliseconds / 1000)


def _stages(spark: SparkSession) -> list[JavaObject]:
    context = spark.sparkContext
    gateway = context._gateway
    assert gateway is not None, "a session without a JVM, as by Spark Connect"
    none, empty = gateway.new_array(gateway.jvm.double, 0), gateway.jvm.java.util.ArrayList()
    stages = context._jsc.sc().statusStore().stageList(None, False, False, none, empty)
    return [stages.apply(number) for number in range(stages.size())]


def _task_times(spark: SparkSession, stage: JavaObject) -> list[float]:
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    quantiles = gateway.new_array(gateway.jvm.double, len(QUANTILES))
    for number, quantile in enumerate(QUANTILES):
        quantiles[number] = quantile
    store = spark.sparkContext._jsc.sc().statusStore()
    found = store.taskSummary(stage.stageId(), stage.attemptId(), quantiles)
    if not found.isDefined():
        return []
    times = found.get().executorRunTime()
    return [float(times.apply(number)) for number in range(times.size())]
