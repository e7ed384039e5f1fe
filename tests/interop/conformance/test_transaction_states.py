"""Compares every request of a transactional producer in every state of its id with Apache Kafka.

Each peer is a cluster of two brokers. The first coordinates; the second leads partition 0 of each topic and is stopped
(SIGSTOP), so that a transaction with that partition stays in PrepareCommit or PrepareAbort.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path

import pytest

from coordinator.transaction.transaction import Producer
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.interop.conformance.compare import Both, Script
from tests.interop.conformance.meant import MEANT
from tests.interop.conformance.peers import CREATE_TOPICS_VERSION, Pair, Peer
from tests.interop.conformance.transacting import GROUP, TRANSACTION, Transacting
from tests.interop.own_quorum import OdradekNode, OwnQuorum
from tests.interop.quorum import CONTROLLER_ID, ApacheNode, Quorum

COORDINATOR, STOPPED = CONTROLLER_ID, 2
STAYS_UNFENCED_MS = 3_600_000
"""A session timeout so long that the stopped broker remains leader for the whole test."""

WITHOUT_MARKER, WITH_MARKER = 0, 1
"""The partitions whose markers are not written, and are written."""

OTHER_PRODUCER_ID = 77_000

Node = OdradekNode | ApacheNode
Step = Callable[[Transacting], object]
Request = Callable[[Transacting, Producer], object]


def ended(partition: int, *, committed: bool, version: int) -> Step:
    def steps(txn: Transacting) -> None:
        txn.add(partition)
        txn.end(committed=committed, version=version, settled=partition == WITH_MARKER)

    return steps


def fenced(txn: Transacting) -> None:
    """Another producer with the id has started, which aborts the transaction."""
    txn.add(WITHOUT_MARKER)
    txn.init()


SETTLED: dict[str, Step] = {
    "Empty": lambda txn: None,
    "Ongoing": lambda txn: txn.add(WITH_MARKER),
    "Ongoing v2": lambda txn: txn.write(WITH_MARKER),
    "CompleteCommit v1": ended(WITH_MARKER, committed=True, version=4),
    "CompleteCommit v2": ended(WITH_MARKER, committed=True, version=5),
    "CompleteAbort v1": ended(WITH_MARKER, committed=False, version=4),
    "CompleteAbort v2": ended(WITH_MARKER, committed=False, version=5),
}
ENDING: dict[str, Step] = {
    "PrepareCommit v1": ended(WITHOUT_MARKER, committed=True, version=4),
    "PrepareCommit v2": ended(WITHOUT_MARKER, committed=True, version=5),
    "PrepareAbort v1": ended(WITHOUT_MARKER, committed=False, version=4),
    "PrepareAbort v2": ended(WITHOUT_MARKER, committed=False, version=5),
    "fenced": fenced,
}

REQUESTS: tuple[Request, ...] = (
    lambda txn, producer: txn.end(committed=True, producer=producer, version=4, settled=False),
    lambda txn, producer: txn.end(committed=False, producer=producer, version=4, settled=False),
    lambda txn, producer: txn.end(committed=True, producer=producer, version=5, settled=False),
    lambda txn, producer: txn.end(committed=False, producer=producer, version=5, settled=False),
    lambda txn, producer: txn.add(WITH_MARKER, producer=producer),
    lambda txn, producer: txn.add_batched(WITH_MARKER, producer=producer, verify=False),
    lambda txn, producer: txn.add_batched(WITH_MARKER, producer=producer, verify=True),
    lambda txn, producer: txn.add_offsets(producer=producer),
    lambda txn, producer: txn.commit_offset(1, producer=producer, version=4),
    lambda txn, producer: txn.commit_offset(1, producer=producer, version=5),
    lambda txn, producer: txn.write(WITH_MARKER, producer=producer, version=11),
    lambda txn, producer: txn.write(WITH_MARKER, producer=producer, version=12),
    lambda txn, producer: txn.init(producer),
    lambda txn, _: txn.init(),
)


class Which(Enum):
    """The producer of a request, by its distance from the epoch in the last answer."""

    CURRENT = 0
    BEFORE = -1
    OLDER = -2
    NEWER = 1
    OTHER_ID = None

    def of(self, current: Producer) -> Producer:
        if self.value is None:
            return Producer(OTHER_PRODUCER_ID, current.epoch)
        return Producer(current.producer_id, max(0, current.epoch + self.value))


class Cluster:
    """The coordinator of a cluster as a peer, and the second broker, which is stopped before it leads any partition."""

    def __init__(self, name: str, first: Node, bootstrap: str, second: Node) -> None:
        self.nodes = (second, first)
        first.start()
        self.peer = Peer(name, bootstrap, first.data)
        self.peer.find_coordinator("any", TRANSACTION)  # their topics are created while there is one broker
        self.peer.find_coordinator("any", GROUP)
        second.start()
        second.signal(signal.SIGSTOP)


def odradek(folder: Path) -> Cluster:
    quorum = OwnQuorum(folder, is_broker=True, broker__session__timeout__ms=str(STAYS_UNFENCED_MS))
    return Cluster("odradek", quorum.controller, quorum.controller.bootstrap, quorum.odradek(STOPPED))


def apache(folder: Path) -> Cluster:
    quorum = Quorum(folder, is_broker=True, session_ms=STAYS_UNFENCED_MS)
    return Cluster("apache kafka", quorum.controller, quorum.bootstrap, quorum.apache(STOPPED)[0])


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    makers = (odradek, apache)
    with ThreadPoolExecutor(len(makers)) as pool:
        clusters = list(pool.map(lambda make: make(tmp_path_factory.mktemp("states")), makers))
    ours, theirs = (cluster.peer for cluster in clusters)
    yield Both(Pair(ours, theirs, served={}), MEANT)
    for node in itertools.chain.from_iterable(cluster.nodes for cluster in clusters):
        node.forget()


def create(peer: Peer, topic: str) -> None:
    """Creates a topic whose partition 0 the stopped broker leads."""
    leaders = {WITHOUT_MARKER: STOPPED, WITH_MARKER: COORDINATOR}
    assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=[leader]) for index, leader in leaders.items()
    ]
    creatable = CreatableTopic(
        name=topic, num_partitions=-1, replication_factor=-1, assignments=assignments, configs=[]
    )
    answer = peer.quietly(CreateTopicsRequest(topics=[creatable], timeout_ms=10_000), CREATE_TOPICS_VERSION)
    assert isinstance(answer, CreateTopicsResponse)
    assert answer.topics[0].error_code == 0, answer
    peer.wait_for_leaders(topic, [WITH_MARKER])


def each_request(topic: str, state: Step, settle: Step) -> Script:
    """Returns a script that sends each request, as each producer, to a new transactional id in the state."""

    def script(peer: Peer) -> None:
        create(peer, topic)
        for number, (request, which) in enumerate(itertools.product(REQUESTS, Which)):
            txn = Transacting(peer, f"{topic}-{number}", topic)
            state(txn)
            request(txn, which.of(txn.producer))
            settle(txn)
            txn.describe()

    return script


@pytest.mark.parametrize("state", SETTLED)
def test_a_request_when_no_marker_is_missing(both: Both, topic: str, state: str) -> None:
    both(each_request(topic, SETTLED[state], Transacting.settle))


@pytest.mark.parametrize("state", ENDING)
def test_a_request_while_markers_are_being_written(both: Both, topic: str, state: str) -> None:
    both(each_request(topic, ENDING[state], lambda txn: None))
