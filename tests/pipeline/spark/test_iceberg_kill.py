"""Tests loads into Iceberg tables that are killed at any stage, or run at once as separate processes.

The next run completes the table, and each offset is there once.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.pipeline.spark.killing import TIMEOUT_S, ended, killed, started
from tests.pipeline.spark.records import activity, create
from tests.pipeline.spark.tables import Warehouse

pytestmark = pytest.mark.timeout(3 * TIMEOUT_S)

STAGES = {"planned": 500, "staged": 500, "counted": 500, "committed": 800}
"""The rows that readers of main see after the driver was killed at a stage."""


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_load(warehouse: Warehouse, stage: str) -> None:
    create(warehouse.broker, warehouse.topic, 3)
    activity(warehouse.broker, warehouse.topic, 500)
    warehouse.load()
    activity(warehouse.broker, warehouse.topic, 300, seed=2)
    killed("tables", warehouse.broker.bootstrap, warehouse.topic, str(warehouse.folder), stage)

    assert len(warehouse.offsets()) == STAGES[stage]
    assert warehouse.load().records == 800 - STAGES[stage]
    assert warehouse.audit().clean
    assert len(set(warehouse.offsets())) == len(warehouse.offsets()) == 800


def test_a_load_that_other_processes_overtake(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic, 3)
    activity(warehouse.broker, warehouse.topic, 500)
    slow = started("tables", warehouse.broker.bootstrap, warehouse.topic, str(warehouse.folder), "counted and wait")
    await_file(warehouse.folder / "reached")
    assert warehouse.load().records == 500
    activity(warehouse.broker, warehouse.topic, 300, seed=2)
    (warehouse.folder / "continue").touch()

    assert "loaded 300" in ended(slow)
    assert warehouse.audit().clean
    assert len(set(warehouse.offsets())) == len(warehouse.offsets()) == 800


def await_file(path: Path) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.05)
