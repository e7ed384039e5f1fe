"""Apache ZooKeeper, alone and as an ensemble, and the Kafka versions that use it: brokers, tools and Scala clients."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeVar

from confluent_kafka import Producer
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from bench.jars import resolve
from tests.interop.brokers import Odradek
from tests.interop.jvm import HERE, compiled_against, java
from tests.interop.processes import Server, free_port, run
from tests.waiting import wait_until

OLDEST, NEWEST = "3.6.4", "3.9.3"
TICK_MS = 500
"""ZooKeeper's tick: a session lasts at least two ticks, and at most twenty."""

READY_TIMEOUT_S = 60
SOON_S = 90
"""Timeout: sessions have to end, and rebalances start again after pauses."""

SESSION_MS = 6_000
LOG4J = f"-Dlog4j.configuration=file:{HERE / 'log4j.properties'}"
SMALL = ("-Xmx128m", LOG4J)

T = TypeVar("T")

PASSWORD_SECRET, PASSWORD_BYTES = 0xB3415C00, 16
JAVA_MULTIPLIER, JAVA_MASK = 0x5DEECE66D, (1 << 48) - 1


@cache
def zookeeper(version: str) -> Path:
    """Returns the jars of Apache ZooKeeper's server."""
    return resolve(f"zookeeper-{version}", HERE / "zookeeper.xml", f"-Dzookeeper.version={version}")


@cache
def old_kafka(version: str) -> Path:
    """Returns the jars of a Kafka that needs ZooKeeper."""
    return resolve(f"old-kafka-{version}", HERE / "old-kafka.xml", f"-Dkafka.version={version}")


def old_java(version: str, main: str, *arguments: str) -> list[str]:
    """Returns the command line of a class of an old Kafka, by `java` itself, because the old scripts pass flags that
    current JVMs reject."""
    return java(f"{old_kafka(version)}/*", main, *arguments, flags=SMALL)


def old_program(version: str, source: str, *arguments: str) -> list[str]:
    """Returns the command line of a program of ours, with the Scala clients of an old Kafka."""
    classpath = compiled_against(source, old_kafka(version), f"old-{version}")
    return java(classpath, Path(source).stem, *arguments, flags=SMALL)


def old_tool(version: str, main: str, *arguments: str, stdin: str = "", timeout_s: float = 120) -> str:
    """Runs one of an old Kafka's tools to its end; returns its output and errors."""
    ended = run(old_java(version, main, *arguments), stdin=stdin.encode(), timeout_s=timeout_s)
    return (ended.stdout + ended.stderr).decode()


class ZooKeeper(Server):
    """A server of Apache ZooKeeper, alone or as a member of an ensemble."""

    def __init__(self, data: Path, version: str = OLDEST, number: int = 1, members: Sequence[str] = ()) -> None:
        super().__init__(f"zookeeper {number}", data.with_name(f"{data.name}.log"))
        self.data, self.version, self.number = data, version, number
        self._members = tuple(members)
        self.port = free_port()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self.launch(self._command(), r"^\$ ", READY_TIMEOUT_S)
        self.until_serving()

    def launch_only(self) -> None:
        """Starts the server without waiting: a member of an ensemble serves once there is a majority."""
        self.launch(self._command(), r"^\$ ", READY_TIMEOUT_S)

    def _command(self) -> list[str]:
        self.data.mkdir(parents=True, exist_ok=True)
        (self.data / "myid").write_text(f"{self.number}\n")
        settings = {
            "tickTime": TICK_MS,
            "initLimit": 20,
            "syncLimit": 10,
            "dataDir": self.data,
            "clientPort": self.port,
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "srvr",
            "maxClientCnxns": 0,
            **{f"server.{number}": address for number, address in enumerate(self._members, 1)},
        }
        file = self.data.with_name(f"{self.data.name}.cfg")
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        flags = (*SMALL, "-Dzookeeper.jmx.log4j.disable=true", "-Dzookeeper.log.dir=.")
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        return java(f"{zookeeper(self.version)}/*", main, str(file), flags=flags)

    def mode(self) -> str:
        """Returns `standalone`, `leader` or `follower`; empty while it doesn't serve."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
                connection.sendall(b"srvr")
                answer = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
        except OSError:
            return ""
        return next((line.split()[1] for line in answer.splitlines() if line.startswith("Mode:")), "")

    def until_serving(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self.mode():
            assert self.is_running, f"{self.name} ended\n{self.tail()}"
            assert time.monotonic() < deadline, f"{self.name} does not serve\n{self.tail()}"
            time.sleep(0.05)  # a server has no other way to say that it serves

    def restart(self) -> None:
        self.stop()
        self.start()


class Ensemble:
    """Three servers of Apache ZooKeeper that elect a leader."""

    def __init__(self, data: Path, version: str = NEWEST) -> None:
        members = [f"127.0.0.1:{free_port()}:{free_port()}" for _ in range(3)]
        self.servers = [ZooKeeper(data / str(number), version, number, members) for number in (1, 2, 3)]

    @property
    def address(self) -> str:
        return ",".join(server.address for server in self.servers)

    def start(self) -> None:
        for server in self.servers:
            server.launch_only()
        for server in self.servers:
            server.until_serving()

    def leader(self) -> ZooKeeper:
        return next(server for server in self.servers if server.mode() == "leader")

    def kill(self) -> None:
        """Kills all of them."""
        for server in self.servers:
            server.kill9()

    def forget(self) -> None:
        for server in self.servers:
            server.forget()


def session_password(session_id: int) -> bytes:
    """Returns the password of a session, which ZooKeeper derives from its id (ZooKeeperServer.generatePasswd): the
    first sixteen bytes of a java.util.Random."""
    state, password = (session_id ^ PASSWORD_SECRET ^ JAVA_MULTIPLIER) & JAVA_MASK, b""
    while len(password) < PASSWORD_BYTES:
        state = (state * JAVA_MULTIPLIER + 0xB) & JAVA_MASK
        password += (state >> 16).to_bytes(4, "little")
    return password


def expire(address: str, session_id: int) -> None:
    """Ends the session of another client, which gets the event that it has expired."""
    client = KazooClient(address, client_id=(session_id, session_password(session_id)))
    client.start(timeout=READY_TIMEOUT_S)
    assert client.client_id is not None
    assert client.client_id[0] == session_id, "the session was not taken over"
    client.stop()
    client.close()


@contextmanager
def znodes(address: str) -> Iterator[KazooClient]:
    """Returns a client of our own that reads znodes."""
    client = KazooClient(address)
    client.start(timeout=READY_TIMEOUT_S)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def looked(address: str, look: Callable[[KazooClient], T]) -> T | None:
    """Returns the result of reading znodes; None while the ensemble gives none."""
    try:
        with znodes(address) as client:
            return look(client)
    except (KazooException, KazooTimeoutError):
        return None


class OldKafka(Server):
    """A broker of a Kafka that needs ZooKeeper."""

    def __init__(
        self, data: Path, connect: str, version: str, properties: Mapping[str, str] | None = None, node_id: int = 1
    ) -> None:
        super().__init__(f"kafka {version}", data.with_name(f"{data.name}.log"))
        self.data, self.connect, self.version, self.node_id = data, connect, version, node_id
        self.properties = dict(properties or {})
        self.port = free_port()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        settings = {
            "broker.id": str(self.node_id),
            "listeners": f"PLAINTEXT://{self.bootstrap}",
            "log.dirs": str(self.data),
            "zookeeper.connect": self.connect,
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "delete.topic.enable": "true",
            "log.cleaner.dedupe.buffer.size": str(2 << 20),
            **self.properties,
        }
        file = self.data.with_name(f"{self.data.name}.properties")
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        flags = (*SMALL, "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED")
        command = java(f"{old_kafka(self.version)}/*", "kafka.Kafka", str(file), flags=flags)
        self.launch(command, r"^\$ ", READY_TIMEOUT_S)
        with znodes(self.connect) as client:
            deadline = time.monotonic() + READY_TIMEOUT_S
            while not client.exists(f"/brokers/ids/{self.node_id}"):
                assert self.is_running, f"{self.name} ended\n{self.tail()}"
                assert time.monotonic() < deadline, f"{self.name} did not register\n{self.tail()}"
                time.sleep(0.05)  # its registration is what says that it serves


def until(condition: Callable[[], object], servers: Iterable[Server] = (), patience_s: float = SOON_S) -> None:
    """Waits for changes of znodes and logs by other processes, which notify no client."""
    wait_until(condition, lambda: "\n".join(server.tail(4_000) for server in servers), within_s=patience_s)


def facing(connect: str, **options: str) -> dict[str, str]:
    """Returns the properties of a broker with an ensemble; `options` have `__` for each dot."""
    return {
        "zookeeper.connect": connect,
        "zookeeper.session.timeout.ms": str(SESSION_MS),
        "zookeeper.connection.timeout.ms": "60000",  # a start on a busy machine
        "offsets.topic.num.partitions": "1",
        **{name.replace("__", "."): text for name, text in options.items()},
    }


def started(data: Path, connect: str, **options: str) -> Odradek:
    """Starts a broker that is the active one of its ensemble."""
    broker = Odradek(data, facing(connect, **options))
    broker.start()
    with znodes(connect) as client:
        until(lambda: client.exists("/controller"), [broker])
    return broker


def produce(broker: Odradek, topic: str, values: range) -> None:
    """Writes numbers, all of which the broker acknowledges."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce(topic, str(value).encode())
    assert producer.flush(SOON_S) == 0
