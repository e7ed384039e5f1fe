"""The pytest plugin (docs/testing.md): brokers as fixtures, and their logs in the report of a failed test.

pytest imports this module in every environment with Odradek, so it imports nothing itself; a fixture imports the
modules that it needs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from odradek.testing import Broker, Cluster, ExternalBroker

LOG_BYTES = 20_000
"""Maximum number of bytes of each broker's log, since the start of the test, that the report shows."""

EXTERNAL, CONTROL = "ODRADEK_EXTERNAL", "ODRADEK_CONTROL"
TOPIC_MARK = "odradek_topic(partitions, replicas, configs): the settings of the topic of the fixture odradek_topic"

_positions = pytest.StashKey[dict[str, int]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("odradek", "brokers of Odradek")
    group.addoption(
        "--odradek-external", metavar="HOST:PORT", help=f"running broker for the fixture odradek_external ({EXTERNAL})"
    )
    group.addoption("--odradek-control", metavar="HOST:PORT", help=f"its control server, if it has one ({CONTROL})")
    parser.addini("odradek_settings", "options of odradek_broker, a line NAME=VALUE each", type="linelist")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", TOPIC_MARK)


@pytest.fixture(scope="session")
def odradek_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker for all tests of the session; with pytest-xdist a broker for each worker. Between tests its faults are
    removed, and it is restarted if it was killed, stopped or paused. Its clock and topics are not reset."""
    from odradek.testing import Broker

    settings = dict(_setting(line) for line in request.config.getini("odradek_settings"))
    with Broker(settings) as broker:
        yield broker


@pytest.fixture
def odradek_topic(request: pytest.FixtureRequest, odradek_broker: Broker) -> Iterator[str]:
    """The name of a new topic on odradek_broker, which is deleted after the test.
    `@pytest.mark.odradek_topic(partitions=3, configs={"cleanup.policy": "compact"})` sets its options."""
    from odradek.testing.fixtures import topic_of

    yield from topic_of(request, odradek_broker)


@pytest.fixture(scope="session")
def odradek_cluster() -> Iterator[Callable[[int], Cluster]]:
    """A function that returns a cluster with a number of brokers: `odradek_cluster(3)`. The cluster starts at the first
    call and runs for the session. A test that kills or pauses a broker must call `recover()`."""
    from odradek.testing import Cluster

    clusters: dict[int, Cluster] = {}
    with ExitStack() as stack:

        def cluster_of(brokers: int) -> Cluster:
            if brokers not in clusters:
                clusters[brokers] = stack.enter_context(Cluster(brokers))
            return clusters[brokers]

        yield cluster_of


@pytest.fixture
def odradek_external(request: pytest.FixtureRequest) -> ExternalBroker:
    """The running broker that --odradek-external or the environment names, for example in CI or a container."""
    from odradek.testing import ExternalBroker

    bootstrap = request.config.getoption("--odradek-external") or os.environ.get(EXTERNAL)
    if not bootstrap:
        pytest.fail(f"odradek_external needs a broker: --odradek-external HOST:PORT, or {EXTERNAL}", pytrace=False)
    return ExternalBroker(bootstrap, request.config.getoption("--odradek-control") or os.environ.get(CONTROL, ""))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Stores the positions of the logs, because earlier lines belong to other tests."""
    item.stash[_positions] = {server: size for server, size, _ in _logs({})}


@pytest.hookimpl(hookwrapper=True)  # the only kind of wrapper that every pytest version supports
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    report: pytest.TestReport = (yield).get_result()
    if report.failed:
        positions = item.stash.get(_positions, {})
        report.sections.extend((f"log of {server}", text) for server, _, text in _logs(positions) if text)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Recovers the session's broker for the next test."""
    broker = getattr(item, "funcargs", {}).get("odradek_broker")
    if broker is not None and broker.is_started:
        broker.recover()


def _logs(positions: dict[str, int]) -> Iterator[tuple[str, int, str]]:
    """Yields the name, the log size and the new log lines of each broker of this process."""
    if (processes := sys.modules.get("odradek.testing.process")) is not None:
        for server in list(processes.started):
            name = f"{server.name} ({server.directory})"
            yield name, server.log_size, server.log_after(positions.get(name, 0), LOG_BYTES)


def _setting(line: str) -> tuple[str, str]:
    name, equals, value = line.partition("=")
    if not equals:
        raise pytest.UsageError(f"odradek_settings: {line!r} is not NAME=VALUE, such as num.partitions=3")
    return name.strip(), value.strip()
