"""The pytest plugin (docs/testing.md): brokers as fixtures, and their logs beside a test that fails.

pytest imports this in every environment where Odradek is installed, so it imports nothing itself: what a fixture needs
comes when a test asks for it.
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
"""Of each broker's log, this much of what it wrote since the test began is in the report."""

EXTERNAL, CONTROL = "ODRADEK_EXTERNAL", "ODRADEK_CONTROL"
TOPIC_MARK = "odradek_topic(partitions, replicas, configs): how the topic of the fixture odradek_topic is made"

_positions = pytest.StashKey[dict[str, int]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("odradek", "brokers of Odradek")
    group.addoption(
        "--odradek-external",
        metavar="HOST:PORT",
        help=f"broker that runs already, for the fixture odradek_external ({EXTERNAL})",
    )
    group.addoption("--odradek-control", metavar="HOST:PORT", help=f"its control server, if it has one ({CONTROL})")
    parser.addini("odradek_settings", "options of odradek_broker, a line NAME=VALUE each", type="linelist")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", TOPIC_MARK)


@pytest.fixture(scope="session")
def odradek_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker for all tests of the session; with pytest-xdist one for each worker. Between tests its faults go, and it
    runs again if it was killed, stopped or paused. Its clock and its topics stay."""
    from odradek.testing import Broker

    settings = dict(_setting(line) for line in request.config.getini("odradek_settings"))
    with Broker(settings) as broker:
        yield broker


@pytest.fixture
def odradek_topic(request: pytest.FixtureRequest, odradek_broker: Broker) -> Iterator[str]:
    """The name of a new topic at odradek_broker, which goes after the test. `@pytest.mark.odradek_topic(partitions=3,
    configs={"cleanup.policy": "compact"})` says how it is made."""
    from odradek.testing.fixtures import topic_of

    yield from topic_of(request, odradek_broker)


@pytest.fixture(scope="session")
def odradek_cluster() -> Iterator[Callable[[int], Cluster]]:
    """Gives the cluster of so many brokers, which is started when it is first asked for and stays for the session:
    `odradek_cluster(3)`. Whoever kills or pauses a broker of it calls `recover()`."""
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
    """The broker that --odradek-external or the environment names: of CI, of a container, of anyone's."""
    from odradek.testing import ExternalBroker

    bootstrap = request.config.getoption("--odradek-external") or os.environ.get(EXTERNAL)
    if not bootstrap:
        pytest.fail(f"odradek_external needs a broker: --odradek-external HOST:PORT, or {EXTERNAL}", pytrace=False)
    return ExternalBroker(bootstrap, request.config.getoption("--odradek-control") or os.environ.get(CONTROL, ""))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Notes where the logs are: what was written before is another test's."""
    item.stash[_positions] = {server: size for server, size, _ in _logs({})}


@pytest.hookimpl(hookwrapper=True)  # of all kinds of wrappers the one that every pytest knows
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    report: pytest.TestReport = (yield).get_result()
    if report.failed:
        positions = item.stash.get(_positions, {})
        report.sections.extend((f"log of {server}", text) for server, _, text in _logs(positions) if text)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Hands the session's broker on as a test expects it."""
    broker = getattr(item, "funcargs", {}).get("odradek_broker")
    if broker is not None and broker.is_started:
        broker.recover()


def _logs(positions: dict[str, int]) -> Iterator[tuple[str, int, str]]:
    """Yields of each broker of this process its name, the size of its log, and what is new in it."""
    if (processes := sys.modules.get("odradek.testing.process")) is not None:
        for server in list(processes.started):
            name = f"{server.name} ({server.directory})"
            yield name, server.log_size, server.log_after(positions.get(name, 0), LOG_BYTES)


def _setting(line: str) -> tuple[str, str]:
    name, equals, value = line.partition("=")
    if not equals:
        raise pytest.UsageError(f"odradek_settings: {line!r} is not NAME=VALUE, such as num.partitions=3")
    return name.strip(), value.strip()
