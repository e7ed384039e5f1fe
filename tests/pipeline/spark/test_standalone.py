"""Tests the same jobs on a standalone cluster: a master and two workers, started by PySpark's own scripts."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import confluent_kafka
import pyspark
import pytest
from pyspark.sql import SparkSession

from pipeline.audit import AuditConfig, MirrorOf, audit
from pipeline.cluster import Cluster
from pipeline.session import PACKAGES
from pipeline.topics import PartitionName
from tests.interop.brokers import Broker
from tests.interop.processes import ROOT, run
from tests.pipeline.spark.killing import TIMEOUT_S
from tests.pipeline.spark.records import activity, create, is_complete
from tests.pipeline.spark.standalone import CONF, Standalone
from tests.pipeline.spark.tables import NAME, Warehouse, catalog_in

pytestmark = pytest.mark.timeout(3 * TIMEOUT_S)

RECORDS = 20_000
DYNAMIC = "tables with dynamic allocation"


def job_of(name: str, broker: Broker, topic: str, store: str, other: Broker) -> list[str]:
    """Returns the words of a job's command line, with work for several tasks."""
    source = ["--bootstrap", broker.bootstrap, "--topic", topic]
    folder = Path(store).parent
    words = {
        "load": [*source, "--out", store],
        "tables": [
            *source,
            "--catalog",
            f"jdbc:sqlite:{folder}/catalog.db",
            "--warehouse",
            f"{folder}/tables",
            "--table",
            NAME,
        ],
        "stream": [*source, "--out", store, "--max-offsets", "5000"],
        "mirror": ["--source", broker.bootstrap, "--target", other.bootstrap, "--topic", topic],
    }
    return ["load" if name == "tables" else name, *words[name]]


def conf_of(name: str, folder: Path) -> list[str]:
    """Returns the words of Spark's settings: those of the cluster, an event log, and of dynamic allocation."""
    conf = {**CONF, "spark.eventLog.enabled": "true", "spark.eventLog.dir": folder.as_uri()}
    if name == DYNAMIC:
        conf |= {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.shuffleTracking.enabled": "true"}
    return [word for key, value in conf.items() for word in ("--set", f"{key}={value}")]


def under_way(name: str, topic: str, store: str, other: Broker) -> bool:
    """True while a job's tasks are writing; for a stream, the tasks of its second batch."""
    if name == "mirror":
        there = Cluster(other.bootstrap)
        keys = [PartitionName(topic, number) for number in range(4)]
        return topic in there.topic_names() and any(there.end_offsets(keys).values())
    if name == "tables":
        return any(Path(store).parent.glob("tables/kafka/loaded/data/**/*.parquet"))
    begun = name == "load" or Path(store, "_manifests", f"{1:020}.json").exists()
    return begun and any(Path(store).glob("_staging/*/_temporary"))


@pytest.mark.parametrize("name", ["load", "tables", DYNAMIC, "stream", "mirror"])
def test_an_executor_that_is_killed_costs_nothing(
    name: str,
    spark: SparkSession,
    odradek: Broker,
    other: Broker,
    topic: str,
    store: str,
    script: list[str],
    workers: Standalone,
    tmp_path: Path,
) -> None:
    create(odradek, topic, 4)
    activity(odradek, topic, RECORDS, partitions=4)
    (tmp_path / "events").mkdir()
    kind = name.removesuffix(" with dynamic allocation")
    words = [*script, *job_of(kind, odradek, topic, store, other), "--master", workers.url]
    words += conf_of(name, tmp_path / "events")
    job = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + TIMEOUT_S
    while not under_way(kind, topic, store, other) and time.monotonic() < deadline and job.poll() is None:
        time.sleep(0.02)  # a job tells nobody that it has begun
    victims = workers.kill_executors() or workers.kill_executors(1)
    out, _ = job.communicate(timeout=TIMEOUT_S)

    assert job.returncode == 0, out.decode()[-3000:]
    assert victims
    if kind == "mirror":  # which does not count what a killed task has written
        assert audit(spark, AuditConfig(odradek.bootstrap, (topic,), mirror=MirrorOf(other.bootstrap))).clean
        return
    assert f"{RECORDS} records" in out.decode()
    if kind == "tables":
        assert list((tmp_path / "events").glob("*app-*")), "no event log"
        there = Warehouse.of(spark, odradek, topic, tmp_path)
        assert there.audit().clean
        assert len(set(there.offsets())) == len(there.offsets()) == RECORDS
    else:
        assert is_complete(spark, odradek, topic, store)


def dependencies(folder: Path) -> Path:
    """Returns an archive with the packages that the workers' Python needs."""
    packages = Path(confluent_kafka.__file__).parent
    for name in ("confluent_kafka", "confluent_kafka.libs"):
        shutil.copytree(packages.with_name(name), folder / "dependencies" / name)
    return Path(shutil.make_archive(str(folder / "dependencies"), "zip", folder / "dependencies"))


def submit(workers: Standalone, archive: Path, words: list[str]) -> str:
    """Runs a job by spark-submit, with packaged dependencies: the workers' Python has none of its own. Returns the
    output."""
    conf = {
        **CONF,
        "spark.pyspark.driver.python": sys.executable,
        "spark.pyspark.python": sys._base_executable,
        "spark.executorEnv.PYTHONPATH": "dependencies",
        "spark.sql.shuffle.partitions": "2",
    }
    packages = (*PACKAGES, *catalog_in("unused").packages)
    submission = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", workers.url]
    submission += ["--packages", ",".join(packages), "--exclude-packages", "org.slf4j:slf4j-api"]
    submission += ["--archives", f"{archive}#dependencies"]
    submission += [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    command = [*submission, str(ROOT / "odradek" / "__main__.py"), "pipeline", *words]
    return run(command, timeout_s=TIMEOUT_S).stdout.decode()


def test_submitted_jobs_use_the_cluster_and_packaged_dependencies(
    spark: SparkSession, odradek: Broker, topic: str, workers: Standalone, tmp_path: Path
) -> None:
    create(odradek, topic, 2)
    activity(odradek, topic, 500, partitions=2)
    archive = dependencies(tmp_path)
    catalog = ["--catalog", f"jdbc:sqlite:{tmp_path}/catalog.db", "--warehouse", f"{tmp_path}/tables", "--table", NAME]
    words = ["--bootstrap", odradek.bootstrap, "--topic", topic, *catalog]
    again, before = f"{topic}-again", set(workers.ran())

    assert "500 records" in submit(workers, archive, ["load", *words])
    assert "500 records replayed" in submit(workers, archive, ["replay", *words, "--to-topic", again])
    assert Warehouse.of(spark, odradek, topic, tmp_path).audit().clean
    there = Cluster(odradek.bootstrap)
    assert sum(there.end_offsets([PartitionName(again, number) for number in range(2)]).values()) >= 500
    assert len(set(workers.ran()) - before) == 2
