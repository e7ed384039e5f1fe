"""Runs jobs in a separate process, which kills itself at a stage."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping

from tests.interop.processes import CACHE, ROOT
from tests.pipeline.spark.standalone import CONF

TIMEOUT_S = 400
"""Timeout of a job. Spark starts within seconds on an idle machine, and within minutes on a busy one."""

BEFORE = """
import json, os, signal, sys, threading, time
from pathlib import Path
from pipeline import session
from pipeline.iceberg.catalog import Catalog

bootstrap, topic, there, stage, master, settings = sys.argv[1:]
spark = session.start("killed", master, json.loads(settings), Catalog("jdbc:sqlite:unused").packages)

def end():
    os.kill(os.getpid(), signal.SIGKILL)

def at(reached):
    if reached == stage:
        end()
"""

JOBS: Mapping[str, str] = {
    "load": """
from pipeline.load import LoadConfig, load
load(spark, LoadConfig(bootstrap, there, (topic,)), at)
""",
    "tables": """
from pipeline.iceberg.load import load_tables
from pipeline.load import LoadConfig
from tests.pipeline.spark.tables import place_in

def at_or_wait(reached):
    at(reached)
    if reached == stage.removesuffix(" and wait"):
        Path(there, "reached").touch()
        while not Path(there, "continue").exists():
            time.sleep(0.05)

place = place_in(there)
session = place.catalog.attached(spark)
for done in load_tables(session, LoadConfig(bootstrap, "", (topic,)), place, at_or_wait).values():
    print("loaded", done.records, flush=True)
""",
    "stream": """
from pipeline.stream import StreamConfig, stream

begun = []

def in_second_batch(reached):
    begun.extend([reached] * (reached == "planned"))
    if len(begun) == 2:
        at(reached)

stream(spark, StreamConfig(bootstrap, there, (topic,), max_offsets=200), at=in_second_batch)
""",
    "table stream": """
from pipeline.stream import StreamConfig, stream
from tests.pipeline.spark.tables import place_in

begun = []

def in_second_batch(reached):
    begun.extend([reached] * (reached == "planned"))
    if len(begun) == 2:
        at(reached)

place = place_in(there)
config = StreamConfig(bootstrap, None, (topic,), tables=place, checkpoint=f"{there}/checkpoint", max_offsets=200)
stream(place.catalog.attached(spark), config, at=in_second_batch)
""",
    "mirror": """
from confluent_kafka import Consumer, TopicPartition
from pipeline.mirror import MirrorConfig, mirror

def watch():
    consumer = Consumer({"bootstrap.servers": there, "group.id": "watch"})
    while consumer.get_watermark_offsets(TopicPartition(topic, 0), 10)[1] <= int(stage.removeprefix("written ")):
        pass
    end()

def at_or_when_written(reached):
    if reached == "prepared" and stage.startswith("written "):
        threading.Thread(target=watch).start()
    at(reached)

mirror(spark, MirrorConfig(bootstrap, there, (topic,)), at=at_or_when_written)
""",
}

EMBEDDED = {"spark.driver.memory": "512m", "spark.jars.ivy": str(CACHE / "ivy"), "spark.sql.shuffle.partitions": "2"}


def started(
    job: str, bootstrap: str, topic: str, there: str, stage: str = "", master: str = "local[2]"
) -> subprocess.Popen[bytes]:
    """Starts a job, which kills its driver at the stage, if it is given.

    `there` is a store, the folder of a warehouse, or the brokers of a mirror.
    """
    settings = EMBEDDED if master.startswith("local") else {**CONF, "spark.sql.shuffle.partitions": "2"}
    words = [bootstrap, topic, there, stage, master, json.dumps(settings)]
    return subprocess.Popen(
        [sys.executable, "-c", BEFORE + JOBS[job], *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def ended(job: subprocess.Popen[bytes], status: int = 0, timeout_s: float = TIMEOUT_S) -> str:
    """Returns the output of a job that ended with this status."""
    out, _ = job.communicate(timeout=timeout_s)
    assert job.returncode == status, out.decode()[-3000:]
    return out.decode()


def killed(job: str, bootstrap: str, topic: str, there: str, stage: str) -> None:
    """Runs a job until the stage at which its driver is killed."""
    ended(started(job, bootstrap, topic, there, stage), -signal.SIGKILL)
