"""A driver that is killed at any stage leaves the last committed state, and the next run makes the store complete."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

from pipeline.load import LoadConfig, load
from pipeline.store import Store
from tests.interop.brokers import Broker
from tests.interop.processes import CACHE, ROOT
from tests.pipeline.spark.records import activity, create, is_complete

KILLED = """
import os, signal, sys
from pipeline import session
from pipeline.load import LoadConfig, load

bootstrap, topic, store, stage, ivy = sys.argv[1:]
spark = session.start("killed", "local[2]", {"spark.driver.memory": "512m", "spark.jars.ivy": ivy})

def at(reached):
    if reached == stage:
        os.kill(os.getpid(), signal.SIGKILL)

load(spark, LoadConfig(bootstrap, store, (topic,)), at)
"""

# stage → is the run committed? The stages within a commit are tests/pipeline/test_store.py's.
STAGES = {"planned": False, "staged": False, "committed": True}


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_driver(spark: SparkSession, odradek: Broker, topic: str, store: str, stage: str) -> None:
    create(odradek, topic, 3)
    activity(odradek, topic, 500)
    config = LoadConfig(odradek.bootstrap, store, (topic,))
    load(spark, config)
    activity(odradek, topic, 300, seed=2)

    words = [odradek.bootstrap, topic, store, stage, str(CACHE / "ivy")]
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, *words], cwd=ROOT, capture_output=True, timeout=120, check=False
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()[-2000:]

    if not STAGES[stage]:
        assert spark.read.parquet(store).count() == 500
    assert Store(store).reading().records() == (800 if STAGES[stage] else 500)
    load(spark, config)
    assert is_complete(spark, odradek, topic, store)
    assert spark.read.parquet(store).count() == 800
    assert not any(Store(store).root.glob("_staging/*"))
