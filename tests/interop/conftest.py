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
    """Ends the servers that a test has started and left behind, as one does that fails half way. Servers of fixtures of
    a wider scope were there before it."""
    before = list(Server.started)
    yield
    for server in list(Server.started):
        if not any(server is one for one in before):
            server.forget()


def pytest_sessionfinish() -> None:
    """Ends the servers that a fixture of a wider scope has left behind."""
    for server in list(Server.started):
        server.forget()


def make_broker(peer: str, data: Path, properties: Mapping[str, str] | None = None) -> Broker:
    return ApacheKafka(data, properties) if peer == "apache" else Odradek(data, properties)


@pytest.fixture(scope="session")
def peer(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--peer"))


@pytest.fixture(scope="module")
def shared_broker(peer: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One broker for the tests of a module that need nothing special; each uses topics of its own."""
    broker = make_broker(peer, tmp_path_factory.mktemp("shared") / "data")
    broker.start()
    yield broker
    broker.stop()
    broker.forget()


@pytest.fixture
def properties() -> dict[str, str]:
    """The broker's properties; a module that needs others overrides this."""
    return {}


@pytest.fixture
def broker(peer: str, tmp_path: Path, properties: dict[str, str]) -> Iterator[Broker]:
    """A broker of the test's own, to be killed and started again."""
    broker = make_broker(peer, tmp_path / "data", properties)
    broker.start()
    yield broker
    broker.stop()
    broker.forget()


@pytest.fixture
def start_odradek(tmp_path: Path) -> Iterator[Start]:
    """Starts Odradek with properties, on a directory of choice."""
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
    """Odradek and Apache Kafka, for all tests that run the same commands on both."""
    yield from commanding.both(tmp_path_factory.mktemp("commands"))


@pytest.fixture
def run(command_brokers: list[Broker], capsys: pytest.CaptureFixture[str]) -> commanding.Run:
    """Runs a command on both; returns what it did on Odradek once it is the same on Apache Kafka."""
    return commanding.run_on(command_brokers, capsys)


@pytest.fixture
def feed(monkeypatch: pytest.MonkeyPatch) -> commanding.Feed:
    """Gives commands something to read from standard input, each of them all of it."""
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
    """Share consumers of the Java client, in one JVM per module."""
    return Consumers(share_client)


_numbers = itertools.count(1)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return f"{name[:80].strip('-')}-{next(_numbers)}"
