"""Tests that a broker of odradek.testing starts, and leaves nothing behind, whatever happens to the process that
started it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from odradek.testing import Broker, BrokerError, ControlError, ExternalBroker, RequestRefused
from odradek.testing.fixtures import broker_fixture
from tests.interop.processes import ROOT
from tests.waiting import wait_until

pytestmark = pytest.mark.odradek_only
SOON_S = 30
broker = broker_fixture()


def produce(bootstrap: str, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(SOON_S) == 0


def values(broker: Broker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


def is_alive(pid: int) -> bool:
    """True unless the process is gone, or only waits for its parent to notice its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def processes_in(directory: str) -> set[int]:
    """Returns the processes whose command line names a directory."""
    pids = set()
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if directory.encode() in entry.read_bytes() and is_alive(pid := int(entry.parent.name)):
                pids.add(pid)
        except OSError:
            continue
    return pids


def wait_until_gone(directory: str) -> None:
    wait_until(
        lambda: not processes_in(directory) and not Path(directory).exists(),
        lambda: f"{processes_in(directory)} are left, or {directory}",
    )


def test_a_broker_serves_and_leaves_nothing_behind() -> None:
    with Broker({"num.partitions": 2}) as broker:
        directory, pid = broker.directory, broker.process.pid
        broker.create_topic("orders")
        produce(broker.bootstrap, "orders", "one", "two", "three")
        assert sorted(filter(None, values(broker, "orders"))) == [b"one", b"three", b"two"]
        assert len(broker.partitions("orders")) == 2
        assert processes_in(str(directory)) > {pid}
    assert not processes_in(str(directory))
    assert not directory.exists()
    with pytest.raises(BrokerError, match="not started"):
        broker.bootstrap  # noqa: B018
    broker.close()


@pytest.mark.examples
async def test_it_is_an_asynchronous_context_manager_too() -> None:
    async with Broker() as broker:
        assert await broker.create_topic("orders") == "orders"
        assert await broker.records("orders") == []
        directory = broker.sync.directory
    assert not directory.exists()


KILLED = """
import sys, time
from odradek.testing import Broker
broker = Broker()
broker.start()
{then}
print(broker.directory, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(("number", "then"), [
    (signal.SIGKILL, "broker.pause()"),
    *(
        pytest.param(number, then, marks=pytest.mark.examples)
        for number in (signal.SIGKILL, signal.SIGTERM)
        for then in ("pass", "broker.kill(); broker.restart()")
    ),
])  # fmt: skip
def test_nothing_is_left_of_a_suite_that_is_killed(number: signal.Signals, then: str) -> None:
    suite = subprocess.Popen(
        [sys.executable, "-c", KILLED.format(then=then)], stdout=subprocess.PIPE, cwd=ROOT, text=True
    )
    assert suite.stdout is not None
    directory = suite.stdout.readline().strip()
    assert processes_in(directory)
    suite.send_signal(number)
    suite.wait()
    suite.stdout.close()
    wait_until_gone(directory)


@pytest.mark.examples
def test_nothing_is_left_of_a_suite_that_is_killed_while_a_broker_starts() -> None:
    """The suite is killed at any moment: each run lives longer than the one before."""
    environment = {**os.environ, "TMPDIR": tempfile.mkdtemp(prefix="killed-")}
    for moment in range(8):
        suite = subprocess.Popen(
            [sys.executable, "-c", KILLED.format(then="")], stdout=subprocess.DEVNULL, cwd=ROOT, env=environment
        )
        time.sleep(0.05 + 0.03 * moment)  # the moment of the kill
        suite.kill()
        suite.wait()
    directory = environment["TMPDIR"]
    wait_until(
        lambda: not processes_in(directory) and not any(Path(directory).iterdir()),
        lambda: [*Path(directory).iterdir()],
    )
    os.rmdir(environment["TMPDIR"])


def test_it_keeps_its_port_and_its_records_over_restarts(broker: Broker) -> None:
    broker.create_topic("orders")
    address = broker.bootstrap
    produce(address, "orders", "before")
    broker.restart()
    broker.kill()
    assert not broker.process.is_running
    with pytest.raises(BrokerError, match="no answer"):
        broker.describe()
    broker.restart()
    assert broker.bootstrap == address
    produce(address, "orders", "after")
    assert values(broker, "orders") == [b"before", b"after"]


def test_a_paused_broker_answers_nobody_until_it_goes_on(broker: Broker) -> None:
    with broker.paused(), socket.create_connection(_address(broker), SOON_S) as connection:
        connection.sendall(b"\0\0\0\x0a\0\x12\0\0\0\0\0\x07\xff\xff")
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        broker.resume()
        connection.settimeout(SOON_S)
        assert connection.recv(1)


def _address(broker: Broker) -> tuple[str, int]:
    host, _, port = broker.bootstrap.rpartition(":")
    return host, int(port)


@pytest.mark.examples
def test_recovery_makes_it_serve_whatever_was_done(broker: Broker) -> None:
    broker.pause()
    broker.recover()
    broker.fault(error="UNKNOWN_SERVER_ERROR")
    broker.recover()
    broker.stop()
    broker.recover()
    assert broker.create_topic("orders") == "orders"


def test_a_start_that_fails_tells_what_the_log_says() -> None:
    broker = Broker({"log.retention.mss": 1})
    with pytest.raises(BrokerError, match=r"(?s)ended with status 2.*did you mean log\.retention\.ms"):
        broker.start()
    assert not broker.is_started


@pytest.mark.examples
def test_the_environment_of_the_suite_is_not_the_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_NO_SUCH_OPTION", "1")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    with Broker() as broker:
        assert broker.describe()["profile"] == "test"


def test_a_topic_that_cannot_be_is_refused_with_a_reason(broker: Broker) -> None:
    broker.create_topic("orders")
    with pytest.raises(ControlError, match="orders: TOPIC_ALREADY_EXISTS") as refused:
        broker.create_topic("orders")
    assert refused.value.status == 409
    broker.delete_topic("orders")
    with pytest.raises(ControlError, match="orders: UNKNOWN_TOPIC_OR_PARTITION"):
        broker.delete_topic("orders")


def test_a_broker_of_somebody_elses_has_topics_and_no_control(broker: Broker) -> None:
    external = ExternalBroker(broker.bootstrap)
    assert external.create_topic("orders", partitions=2, configs={"retention.ms": "1000"}) == "orders"
    with pytest.raises(RequestRefused, match=r"orders is not created: .*exists") as refused:
        external.create_topic("orders")
    assert refused.value.code == 36
    with pytest.raises(BrokerError, match="no control server"):
        external.records("orders")
    controlled = ExternalBroker(broker.bootstrap, broker.control_url.removeprefix("http://"))
    assert len(controlled.partitions("orders")) == 2
    external.delete_topic("orders")
    with pytest.raises(RequestRefused, match="orders is not deleted"):
        external.delete_topic("orders")


@pytest.fixture
def deaf() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.mark.examples
def test_what_is_no_broker_is_told_as_such(deaf: socket.socket) -> None:
    port = deaf.getsockname()[1]
    deaf.close()
    with pytest.raises(BrokerError, match="no broker answered"):
        ExternalBroker(f"127.0.0.1:{port}").create_topic("orders")
