"""The Spark session of all tests here, small enough for two shared cores, and the brokers for the jobs."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline import session
from pipeline.iceberg.catalog import DRIVER_PACKAGES, Catalog
from tests.interop.brokers import Broker
from tests.interop.conftest import make_broker
from tests.interop.processes import CACHE
from tests.pipeline.spark.standalone import Standalone, standalone
from tests.pipeline.spark.tables import Warehouse

SMALL = {
    "spark.driver.memory": "1g",
    "spark.jars.ivy": str(CACHE / "ivy"),
    "spark.sql.shuffle.partitions": "2",
    "spark.python.worker.reuse": "true",
}


TIMEOUT_S = 900
"""Timeout of a test without one of its own, and without the start of Spark, which takes minutes on a busy machine."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S, func_only=True))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    drivers = (Catalog(f"jdbc:{name}:unused").packages for name in DRIVER_PACKAGES)
    started = session.start("tests", "local[2]", SMALL, tuple(dict.fromkeys(itertools.chain(*drivers))))
    yield started
    started.stop()


@pytest.fixture(scope="session", params=["odradek", "apache"])
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Yields Odradek, then Apache Kafka: each test that uses it runs with both."""
    broker = make_broker(request.param, tmp_path_factory.mktemp(request.param) / "data")
    broker.start()
    yield broker
    broker.stop()
    broker.forget()


@pytest.fixture(scope="session")
def odradek(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Yields Odradek, for tests that don't depend on the broker."""
    broker = make_broker("odradek", tmp_path_factory.mktemp("alone") / "data")
    broker.start()
    yield broker
    broker.stop()
    broker.forget()


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Yields a second cluster."""
    broker = make_broker("odradek", tmp_path_factory.mktemp("other") / "data")
    broker.start()
    yield broker
    broker.stop()
    broker.forget()


_numbers = itertools.count(1)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """Returns a topic name that no other test uses."""
    return f"{request.node.originalname.removeprefix('test_')[:60].replace('_', '-')}-{next(_numbers)}"


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "store")


@pytest.fixture
def warehouse(spark: SparkSession, odradek: Broker, topic: str, tmp_path: Path) -> Warehouse:
    return Warehouse.of(spark, odradek, topic, tmp_path)


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """Yields a standalone cluster of Spark: a master and two workers."""
    with standalone(tmp_path_factory.mktemp("standalone")) as started:
        yield started


@pytest.fixture
def script() -> list[str]:
    """Returns the command line of `odradek pipeline`, as a user starts it."""
    return [str(Path(sys.executable).parent / "odradek"), "pipeline"]
