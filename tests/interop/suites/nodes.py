"""A cluster for a suite: a controller and brokers, of Odradek or Apache Kafka, and a thread that kills the brokers in
turn."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.interop.either_node import EitherNode, Make
from tests.interop.processes import free_port
from tests.interop.quorum import CONTROLLER_ID
from tests.interop.suites.decoder import Decoder

SESSION_MS = 6_000
"""Session timeout of the brokers. A killed broker, Odradek's or Apache Kafka's, can register again after this time."""

USER, PASSWORD = "scram-user", "scram-password"
MECHANISM = "SCRAM-SHA-256"
CREDENTIAL = f"{MECHANISM}=[name={USER},password={PASSWORD}]"

SETTINGS = {
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
    ),
    "inter.broker.listener.name": "INTERNAL",
    "sasl.enabled.mechanisms": MECHANISM,
    "listener.name.sasl.scram-sha-256.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:ANONYMOUS;User:{USER}",
    "broker.session.timeout.ms": str(SESSION_MS),
    "broker.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    "share.coordinator.state.topic.num.partitions": "5",
    "group.share.delivery.count.limit": "10",  # as in franz-go's own runs: its share test releases records often
    "log.cleaner.dedupe.buffer.size": "2097152",  # the JVM's heap is small
}
"""Settings of all nodes. All others have Kafka's defaults, on both sides."""

INTERNAL_TOPICS = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")


def replication(brokers: int) -> dict[str, str]:
    """Returns the replication settings for a number of brokers: three replicas, of which two must be in sync, or one
    replica."""
    replicas, in_sync = ("3", "2") if brokers >= 3 else ("1", "1")
    return {
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        **{f"{topic}.replication.factor": replicas for topic in INTERNAL_TOPICS},
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.min.isr": in_sync,
    }


MAKES = {
    ("1", Make.ODRADEK): (Make.ODRADEK,),
    ("1", Make.APACHE): (Make.APACHE,),
    ("3", Make.ODRADEK): (Make.ODRADEK,) * 3,
    ("3", Make.APACHE): (Make.APACHE,) * 3,
    ("mixed", Make.ODRADEK): (Make.ODRADEK, Make.APACHE, Make.ODRADEK),
    ("mixed", Make.APACHE): (Make.ODRADEK, Make.APACHE, Make.ODRADEK),
}
"""The software of the brokers. The controller of each cluster has the software of the first broker."""


class Nodes:
    """A controller, and brokers 1 … n. If `decodes`, clients of the listener PLAINTEXT connect to a proxy in front of
    each broker, which reads the broker's responses."""

    def __init__(
        self,
        folder: Path,
        makes: Sequence[Make],
        settings: Callable[[int], Mapping[str, str]] = lambda _: {},
        *,
        decodes: bool = False,
    ) -> None:
        self.decoder = Decoder(folder / "decoder.log") if decodes else None
        self._proxies: dict[str, str] = {}
        """Addresses of the proxies, by the addresses of the listeners."""
        controller = f"127.0.0.1:{free_port()}"
        common = {**SETTINGS, **replication(len(makes)), "controller.quorum.bootstrap.servers": controller}
        own = {"process.roles": "controller", "node.id": str(CONTROLLER_ID), "listeners": f"CONTROLLER://{controller}"}
        arguments = ("--standalone", "--add-scram", CREDENTIAL)
        self.controller = EitherNode(folder, makes[0], {**common, **own}, *arguments)
        self.brokers = [
            self._broker(folder, make, number, {**common, **settings(number)})
            for number, make in enumerate(makes, start=1)
        ]

    def _broker(self, folder: Path, make: Make, node_id: int, common: Mapping[str, str]) -> EitherNode:
        own = {
            "process.roles": "broker",
            "node.id": common.get("node.id", str(node_id)),
            "listeners": ",".join(f"{name}://127.0.0.1:{free_port()}" for name in ("PLAINTEXT", "SASL", "INTERNAL")),
        }
        plain, *others = own["listeners"].split(",")
        address = plain.split("://")[1]
        if self.decoder:
            port = free_port()
            self.decoder.proxy(port, int(address.rpartition(":")[2]))
            self._proxies[address] = f"127.0.0.1:{port}"
        # the settings may have the address of another proxy for clients
        advertised = common.get("advertised.listeners", f"PLAINTEXT://{self._proxies.get(address, address)}")
        own["advertised.listeners"] = ",".join([advertised, *others])
        return EitherNode(folder, make, {**common, **own}, "--no-initial-controllers")

    @property
    def all(self) -> Sequence[EitherNode]:
        return (self.controller, *self.brokers)

    def start(self) -> None:
        for node in self.all:
            node.start()

    def forget(self) -> None:
        """Ends all processes."""
        for node in self.all:
            node.forget()
        if self.decoder:
            self.decoder.close()

    def address(self, broker: EitherNode, listener: str = "PLAINTEXT") -> str:
        """Returns the address of a broker's listener, or of the proxy in front of it."""
        own = dict(named.split("://") for named in broker.settings["listeners"].split(","))[listener]
        return self._proxies.get(own, own)

    def addresses(self, listener: str) -> str:
        """Returns the addresses of the brokers at a listener, as bootstrap servers."""
        return ",".join(self.address(broker, listener) for broker in self.brokers)


class Kill(NamedTuple):
    """A broker that was killed with SIGKILL, and started again at once."""

    at_s: float
    """Time since the tests began."""
    node_id: int
    ready_after_s: float
    """Time until the broker served again."""


class Killer(threading.Thread):
    """Kills the brokers in turn during the block, one every `every_s` seconds; none if `every_s` is 0."""

    def __init__(self, brokers: Sequence[EitherNode], every_s: float) -> None:
        super().__init__(name="killer")
        self.kills: list[Kill] = []
        self.failure: str | None = None
        """Reason why a broker didn't start again."""
        self._brokers = brokers
        self._every_s = every_s
        self._ended = threading.Event()

    def __enter__(self) -> None:
        if self._every_s:
            self.start()

    def __exit__(self, *_: object) -> None:
        """Waits until the broker that was killed last serves again."""
        self._ended.set()
        if self._every_s:
            self.join()

    def run(self) -> None:
        began = due = time.monotonic()
        for broker in itertools.cycle(self._brokers):
            due = max(due + self._every_s, time.monotonic())
            if self._ended.wait(due - time.monotonic()):
                return
            killed = time.monotonic()
            broker.kill9()
            try:
                broker.start()
            except AssertionError as error:
                self.failure = str(error)
                return
            ready = time.monotonic()
            self.kills.append(Kill(round(killed - began, 1), broker.node_id, round(ready - killed, 1)))
