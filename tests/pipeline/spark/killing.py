"""Runs jobs in a separate process, which kills itself at a stage."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping

from tests.interop.processes import CACHE, ROOT

TIMEOUT_S = 400
"""Timeout of a job. Spark starts within seconds on an idle machine, and within minutes on a busy one."""

BEFORE = """
import os, signal, sys, threading
from pathlib import Path
from pipeline import session

bootstrap, topic, there, stage, ivy = sys.argv[1:]
spark = session.start("killed", "local[2]", {"spark.driver.memory": "512m", "spark.jars.ivy": ivy})

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
    "stream": """
from pipeline.stream import StreamConfig, stream

begun = []

def in_second_batch(reached):
    begun.extend([reached] * (reached == "planned"))
    if len(begun) == 2:
        at(reached)

stream(spark, StreamConfig(bootstrap, there, (topic,), max_offsets=200), at=in_second_batch)
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


def killed(job: str, bootstrap: str, topic: str, there: str, stage: str) -> None:
    """Runs a job until the stage at which its driver is killed. `there` is a store, or the brokers of a mirror."""
    words = [bootstrap, topic, there, stage, str(CACHE / "ivy")]
    ended = subprocess.run(
        [sys.executable, "-c", BEFORE + JOBS[job], *words],
        cwd=ROOT,
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()[-2000:]
