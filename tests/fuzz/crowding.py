"""Measures how long one client's large request makes another client wait: `python -m tests.fuzz.crowding`.

Each array of each API's requests gets this number of entries. Other clients send ApiVersions repeatedly; their longest
wait during the large request is its row in the table. If the controller is a separate process, the request goes to a
broker, which may forward it, while others send requests to the controller and to another broker; or it goes to the
controller. The place `apache` is a stock Apache Kafka.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from broker.config.authorization import STANDARD_AUTHORIZER
from broker.dispatch.api import Apis
from broker.handlers import APIS
from broker.handlers.controller import CONTROLLER_APIS
from coordinator.cluster.security.acl import EVERYBODY, WILDCARD
from protocol.acl import ALL_OPERATIONS, CLUSTER_NAME, PatternType, Permission, Resource
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from tests.broker.extremes import TOPIC
from tests.broker.many import Many, requests_of_many
from tests.interop.brokers import ApacheKafka, Odradek
from tests.interop.own_quorum import OwnQuorum
from tests.waiting import wait_until
from tests.wire import WireClient, request_frame

RIGHTS: Final = {"with": "127.0.0.1", "without": "127.0.0.2"}
"""The addresses of a client that has all permissions, and of a client that has none."""

AUTHORIZER: Final = {"authorizer.class.name": STANDARD_AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
"""Options by which everything is allowed until there are access control entries about all kinds of resources."""

JVM_FLAGS: Final = ("-Xms1g", "-Xmx1g", "-XX:-UseSerialGC", "-XX:+UseG1GC", "-XX:TieredStopAtLevel=4")
"""Flags of Apache Kafka's JVM, as its own scripts start it. Other tests' brokers have a small heap."""

ANSWER_TIMEOUT_S: Final = 120
PAUSE_S: Final = 0.002
"""The pause of the other client between two requests."""


class Place(NamedTuple):
    """The server for large requests, and the servers for the other clients."""

    apis: Apis
    asked: str
    others: tuple[str, ...]
    topic_id: bytes
    pid: int
    """The process that decides on the requests."""


class Wait(NamedTuple):
    """The longest wait of another client during one request."""

    longest_s: float
    answered_s: float
    request: str
    outcome: str

    def __str__(self) -> str:
        return f"{self.longest_s:8.3f} {self.answered_s:8.3f}  {self.request} -> {self.outcome}"


class Other:
    """The other client, in its own thread."""

    def __init__(self, bootstrap: str) -> None:
        self._client = WireClient(bootstrap, ANSWER_TIMEOUT_S, RIGHTS["with"])
        self._over = threading.Event()
        self.longest_s = 0.0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        frame = request_frame(ApiVersionsRequest(), 0)
        is_over = False
        while not is_over:
            began = time.monotonic()
            self._client.exchange(frame)
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            is_over = self._over.wait(PAUSE_S)

    def stop(self) -> float:
        """Returns the longest wait, once the last answer has arrived."""
        self._over.set()
        self._thread.join()
        self._client.close()
        return self.longest_s


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.crowding", description=__doc__)
    parser.add_argument("--entries", default="20000", help="entries of each array: 20000,100000,200000")
    parser.add_argument("--api", default="", help="only these: FETCH,METADATA")
    parser.add_argument("--rights", choices=[*RIGHTS, "both"], default="both", help="of the client that asks for much")
    parser.add_argument("--versions", choices=["newest", "all"], default="newest", help="of each request")
    parser.add_argument("--place", choices=PLACES, default="node", help="the process that is asked, see PLACES")
    options = parser.parse_args()
    only = {name for name in options.api.split(",") if name}
    counts = [int(count) for count in options.entries.split(",")]
    waits: list[Wait] = []
    with tempfile.TemporaryDirectory() as folder, PLACES[options.place](Path(folder, "data")) as place:
        for rights in RIGHTS if options.rights == "both" else [options.rights]:
            for many in requests(place.apis, only, all_versions=options.versions == "all"):
                waits += [measured(place, many, count, rights) for count in counts]
    print(" longest answered  request")
    for wait in sorted(waits, reverse=True):
        print(wait)


def requests(apis: Apis, only: set[str], *, all_versions: bool) -> Iterator[Many]:
    """Yields the requests of each API, or of the named ones, in all versions or in the newest."""
    for api in apis:
        if not only or api.key.name in only:
            first, last = api.versions
            for version in range(first if all_versions else last, last + 1):
                yield from requests_of_many(api.request, version)


@contextmanager
def one_node(data: Path) -> Iterator[Place]:
    """Starts a broker that is its own controller, with a topic."""
    with alone(Odradek(data, AUTHORIZER)) as place:
        yield place


@contextmanager
def apache(data: Path) -> Iterator[Place]:
    """Starts a stock Apache Kafka that is its own controller, with the same topic."""
    with alone(ApacheKafka(data, AUTHORIZER, flags=JVM_FLAGS)) as place:
        yield place


@contextmanager
def apache_controller(data: Path) -> Iterator[Place]:
    """Starts the same process; its controller's listener gets the requests."""
    broker = ApacheKafka(data, AUTHORIZER, flags=JVM_FLAGS)
    with alone(broker) as place:
        yield place._replace(apis=CONTROLLER_APIS, asked=broker.controller, others=(broker.controller,))


@contextmanager
def alone(broker: Odradek | ApacheKafka) -> Iterator[Place]:
    try:
        broker.start()
        yield Place(APIS, broker.bootstrap, (broker.bootstrap,), furnished(broker.bootstrap), broker.pid)
    finally:
        broker.forget()


@contextmanager
def two_brokers(data: Path) -> Iterator[Place]:
    """Starts a controller and two brokers; the first broker gets the requests."""
    data.mkdir()
    quorum = OwnQuorum(data, authorizer__class__name=STANDARD_AUTHORIZER, allow__everyone__if__no__acl__found="true")
    first, second = (quorum.odradek(node_id, **AUTHORIZER) for node_id in (1, 2))
    nodes = quorum.controller, first, second
    try:
        for node in nodes:
            node.start()
        others = quorum.address, second.bootstrap
        yield Place(APIS, first.bootstrap, others, furnished(first.bootstrap), quorum.controller.pid)
    finally:
        for node in reversed(nodes):
            node.forget()


@contextmanager
def controller(data: Path) -> Iterator[Place]:
    """Starts the same processes; the controller gets the requests."""
    with two_brokers(data) as place:
        address, _ = place.others
        yield place._replace(apis=CONTROLLER_APIS, asked=address)


PLACES: Final = {
    "node": one_node,
    "brokers": two_brokers,
    "controller": controller,
    "apache": apache,
    "apache-controller": apache_controller,
}
"""A single node; a broker that forwards to a separate controller; that controller; a single node of Apache Kafka, by
its listener for clients or for controllers."""


def furnished(bootstrap: str) -> bytes:
    """Creates the topic that the requests name, and permits everything to one address only; returns the topic's id."""
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1, assignments=[], configs=[])
    client = WireClient(bootstrap, ANSWER_TIMEOUT_S, RIGHTS["with"])
    answer = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), CreateTopicsResponse, 7)
    entries = [
        AclCreation(
            resource_type=kind,
            resource_name=CLUSTER_NAME if kind is Resource.CLUSTER else WILDCARD,
            resource_pattern_type=PatternType.LITERAL,
            principal=EVERYBODY,
            host=RIGHTS["with"],
            operation=ALL_OPERATIONS,
            permission_type=Permission.ALLOW,
        )
        for kind in Resource
    ]
    permitted = client.ask(CreateAclsRequest(creations=entries), CreateAclsResponse, 3)
    assert not any(result.error_code for result in permitted.results), permitted
    client.close()
    wait_until(lambda: is_denied(bootstrap), lambda: "a client without rights is permitted")
    return answer.topics[0].topic_id


def is_denied(bootstrap: str) -> bool:
    """True if the controller already knows that the client without rights has none."""
    client = WireClient(bootstrap, ANSWER_TIMEOUT_S, RIGHTS["without"])
    topic = CreatableTopic(name="denied", num_partitions=1, replication_factor=1, assignments=[], configs=[])
    answer = client.ask(CreateTopicsRequest(topics=[topic], validate_only=True), CreateTopicsResponse, 7)
    client.close()
    return answer.topics[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def measured(place: Place, many: Many, count: int, rights: str) -> Wait:
    """Returns the longest wait of another client during this request."""
    frame = request_frame(many.build(count, place.topic_id), many.version)
    return wait_during(place, frame, rights, f"{many} {count} entries, {rights} rights, {len(frame)} bytes")


def wait_during(place: Place, frame: bytes, rights: str, request: str) -> Wait:
    """Returns the longest wait of another client while a client with these rights sends the frame."""
    client = WireClient(place.asked, ANSWER_TIMEOUT_S, RIGHTS[rights])
    others = [Other(bootstrap) for bootstrap in place.others]
    began = time.monotonic()
    try:
        outcome = f"{len(client.exchange(frame))} bytes"
    except OSError as error:
        outcome = str(error)
    answered_s = time.monotonic() - began
    client.close()
    longest_s = max([other.stop() for other in others])
    return Wait(longest_s, answered_s, request, outcome)


if __name__ == "__main__":
    main()
