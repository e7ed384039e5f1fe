"""Fixtures of the tests with real clients."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path

import pytest

from bench import wheel
from tests.interop import commanding
from tests.interop.brokers import ApacheKafka, Broker, Odradek
from tests.interop.processes import LineClient, Server
from tests.interop.sharing import Consumers, start_client

Start = Callable[..., Odradek]


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--installed"):
        Odradek.program = wheel.program()
    Odradek.recorded = config.getoption("--record-frames")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        report.sections.extend((f"log of {server.name} ({server.log})", server.tail()) for server in Server.started)
    return report


@pytest.fixture(autouse=True)
def ended_servers() -> Iterator[None]:
    """Ends the servers that a test has started and not ended, because it failed. Servers of fixtures with a wider scope
    continue."""
    before = list(Server.started)
    yield
    for server in list(Server.started):
        if not any(server is one for one in before):
            server.forget()


def pytest_sessionfinish() -> None:
    """Ends the servers that fixtures with a wider scope have left."""
    for server in list(Server.started):
        server.forget()


def make_broker(peer: str, data: Path, properties: Mapping[str, str] | None = None) -> Broker:
    return ApacheKafka(data, properties) if peer == "apache" else Odradek(data, properties)


@pytest.fixture(scope="session")
def peer(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--peer"))


@pytest.fixture(scope="module")
def shared_broker(peer: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Yields one broker for the tests of a module without special needs; each test uses its own topics."""
    broker = make_broker(peer, tmp_path_factory.mktemp("shared") / "data")
    broker.start()
    yield broker
    broker.stop()
    broker.forget()


@pytest.fixture
def properties() -> dict[str, str]:
    """Returns the broker's properties; a module that needs others overrides this."""
    return {}


@pytest.fixture
def broker(peer: str, tmp_path: Path, properties: dict[str, str]) -> Iterator[Broker]:
    """Yields a broker for one test, which may kill and restart it."""
    broker = make_broker(peer, tmp_path / "data", properties)
    broker.start()
    yield broker
    broker.stop()
    broker.forget()


@pytest.fixture
def start_odradek(tmp_path: Path) -> Iterator[Start]:
    """Starts Odradek with these properties on a directory."""
    made: list[Odradek] = []

    def start(properties: Mapping[str, str] | None = None, data: Path | None = None) -> Odradek:
        made.append(Odradek(data or tmp_path / f"data-{len(made)}", properties))
        made[-1].start()
        return made[-1]

    yield start
    for one in made:
        one.forget()


@pytest.fixture(scope="session")
def command_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Broker]]:
    """Yields Odradek and Apache Kafka, for all tests that run the same commands on both."""
    yield from commanding.both(tmp_path_factory.mktemp("commands"))


@pytest.fixture
def run(command_brokers: list[Broker], capsys: pytest.CaptureFixture[str]) -> commanding.Run:
    """Runs a command on both; returns Odradek's outcome once Apache Kafka's is the same."""
    return commanding.run_on(command_brokers, capsys)


@pytest.fixture
def feed(monkeypatch: pytest.MonkeyPatch) -> commanding.Feed:
    """Sets the content of standard input, all of which each command reads."""
    fed = commanding.Fed()
    monkeypatch.setattr("sys.stdin", fed)
    return lambda content: setattr(fed, "content", content)


@pytest.fixture(scope="module")
def share_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineClient]:
    client = start_client(tmp_path_factory.mktemp("share") / "share.log")
    yield client
    client.close()


@pytest.fixture
def consumers(share_client: LineClient) -> Consumers:
    """Yields share consumers of the Java client, in one JVM per module."""
    return Consumers(share_client)


_numbers = itertools.count(1)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """Returns a topic name that no other test uses."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return f"{name[:80].strip('-')}-{next(_numbers)}"
