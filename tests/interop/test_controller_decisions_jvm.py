"""Compares a controller of Apache Kafka with ours: both get the same random requests of simulated brokers.

Answers and records are compared after each request, and so is the state of all records. A step that differs is printed
with the seed and its number. The steps leave no free choices: assignments are explicit, and each broker has one log
directory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest

from coordinator.cluster.configs.resource import ConfigResource, ResourceType
from coordinator.cluster.image import Image
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.record import decode_batches
from protocol.errors import KafkaError, error_code
from protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsResponse
from protocol.messages.create_topics import CreateTopicsResponse
from protocol.messages.elect_leaders import ElectLeadersResponse
from protocol.messages.update_features import UpdateFeaturesResponse
from protocol.metadata_records.nodes import BrokerRegistrationChangeRecord
from protocol.metadata_records.topics import PartitionChangeRecord
from protocol.schema import identity
from tests.interop.brokers import CLUSTER_ID
from tests.interop.quorum import CONTROLLER_ID, Quorum
from tests.scenarios.controlling import COMMANDS, ControllerScenario, state
from tests.scenarios.runner import Words, words
from tests.waiting import wait_until
from tests.wire import WireClient

R = TypeVar("R")

BROKERS = (1, 2, 3, 4)
CLUSTER_DEFAULTS = ConfigResource(ResourceType.BROKER, "")
SESSION_MS = 3_600_000
"""A session timeout that never ends, because the end would depend on time."""

ITEMIZED = frozenset(
    {CreateTopicsResponse, ElectLeadersResponse, AlterPartitionReassignmentsResponse, UpdateFeaturesResponse}
)
"""Requests whose errors are in the answer to each item."""


class ApacheController:
    """A controller in another process, which gets our requests."""

    def __init__(self, wire: WireClient) -> None:
        self._wire = wire

    async def submit(self, request: object, response: type[R], _asker: object = None) -> R:
        answer: R = self._wire.ask(request, response, identity(type(request)).versions.last)
        code = error_code(getattr(answer, "error_code", 0))
        if code and response not in ITEMIZED:
            raise KafkaError(code)
        return answer


class ApacheScenario(ControllerScenario):
    """Commands to a controller of Apache Kafka, whose records are read from its log."""

    def __init__(self, quorum: Quorum) -> None:
        self._log = quorum.controller.data / "__cluster_metadata-0" / f"{0:020}.log"
        self._loader = MetadataLoader(Image(CLUSTER_ID))
        self._position = 0
        self._fenced: set[int] = set()
        self.effects = []
        self.controller = ApacheController(WireClient(quorum.joining["controller.quorum.bootstrap.servers"]))  # type: ignore[assignment]
        wait_until(self.is_ready)

    def is_ready(self) -> bool:
        """Returns whether the log has the last record that a new controller writes on its own. It is written after the
        controller has begun to answer."""
        self.read()
        return "min.insync.replicas" in self.image.configs(CLUSTER_DEFAULTS)

    @property
    def image(self) -> Image:
        return self._loader.image

    def broker_change(self, record: BrokerRegistrationChangeRecord) -> str:
        """Removes a record that Kafka writes to fence a stopping broker that is already fenced; we don't write a record
        without effect."""
        is_news = record.fenced <= 0 or record.broker_id not in self._fenced
        return super().broker_change(record) if is_news else ""

    def _forget_former_replicas(self, record: PartitionChangeRecord) -> None:
        """Removes eligible replicas that a reassignment has removed: Kafka keeps them, we don't."""
        topic = self.image.topic_by_id(record.topic_id)
        if topic is None or record.eligible_leader_replicas is None:
            return
        partition = topic.partitions[record.partition_id]
        replicas = partition.replicas if record.replicas is None else record.replicas
        elr = [one for one in record.eligible_leader_replicas if one in replicas]
        record.eligible_leader_replicas = None if tuple(elr) == partition.elr else elr

    def read(self) -> None:
        """Reads the new records of the log."""
        data = self._log.read_bytes()[self._position :]
        for batch in decode_batches(data):
            self._position += batch.size_bytes
            self._fenced = {broker.broker_id for broker in self.image.brokers.values() if broker.fenced}
            for record in batch.records:
                if isinstance(record, PartitionChangeRecord):
                    self._forget_former_replicas(record)
            self._loader.commit(batch)
            self.committed(batch)


class OwnScenario(ControllerScenario):
    """Commands to our controller."""

    OPTIONS = ClusterOptions(
        node_id=CONTROLLER_ID,
        has_broker=False,
        broker_session_timeout_ms=SESSION_MS,
        metadata_max_idle_interval_ms=0,
    )

    def open(self) -> None:
        self.options = self.OPTIONS
        self.metadata = self.harness.open(self.options, cluster_id=CLUSTER_ID, register=False)
        self.metadata.metadata_log.listen(self.committed)
        self.controller = self.metadata.controller


def normal(effects: list[str]) -> list[str]:
    """Returns effects without the parts in which both may differ: the order of records in a batch, and of eligible
    replicas."""

    def in_order(match: re.Match[str]) -> str:
        return match[1] + ",".join(sorted(match[2].split(",")))

    return sorted(re.sub(r"(elr=)([\d,]+)", in_order, effect) for effect in effects)


def cluster_of(image: Image) -> list[str]:
    """Returns all brokers and partitions as text."""
    brokers = [
        f"broker {broker.broker_id} fenced={broker.fenced} stopping={broker.in_controlled_shutdown}"
        for broker in image.brokers.values()
    ]
    partitions = [
        f"{topic.name}-{index} {state(partition)} partition_epoch={partition.partition_epoch} "
        f"recovering={partition.leader_recovery_state}"
        for topic in image.topics()
        for index, partition in topic.partitions.items()
    ]
    return normal([*brokers, *partitions])


class Steps:
    """Random requests that are valid, or nearly valid, for the present cluster."""

    def __init__(self, seed: int, image: Image) -> None:
        self._dice = Random(seed)
        self._image = image
        self._topics = 0
        self._stopped: set[int] = set()
        """Brokers that may stop: Kafka counts them as alive until their session ends, we don't."""

    def next(self) -> str:
        kinds = {"beat": 6, "isr": 12, "topic": 3, "elect": 2, "reassign": 4, "register": 2, "unregister": 1}
        (kind,) = self._dice.choices(list(kinds), list(kinds.values()))
        line: str | None = getattr(self, kind)()
        return line if line is not None else self.register()

    def register(self) -> str:
        broker_id = self._dice.choice(BROKERS)
        if broker_id not in self._image.brokers:
            self._stopped.discard(broker_id)
            return f"register {broker_id} run={self._dice.randrange(1_000)}"
        run = " run=another" if broker_id not in self._stopped and self._dice.random() < 0.5 else ""
        return f"register {broker_id}{run}" if run else f"beat {broker_id}"

    def beat(self) -> str:
        broker_id = self._dice.choice(BROKERS)
        wants = self._dice.choices(["", " want=stop", " want=fence", " want=fence,stop"], [12, 2, 2, 1])[0]
        if "stop" in wants:
            self._stopped.add(broker_id)
        behind = self._dice.choices(["", " behind=1", " behind=100000"], [8, 1, 1])[0]
        epoch = self._dice.choices(["", " epoch=1"], [15, 1])[0]
        return f"beat {broker_id}{wants}{behind}{epoch}"

    def topic(self) -> str:
        self._topics += 1
        replicas = [self._replicas(BROKERS, 1) for _ in range(self._dice.randint(1, 3))]
        configs = f" min.insync.replicas={self._dice.randint(1, 3)}"
        if self._dice.random() < 0.3:
            configs += " unclean.leader.election.enable=true"
        return f"topic topic-{self._topics} {' '.join(replicas)}{configs}"

    def _replicas(self, among: tuple[int, ...], at_least: int) -> str:
        return ",".join(map(str, self._dice.sample(among, self._dice.randint(at_least, len(among)))))

    def _place(self) -> tuple[str, int] | None:
        topics = list(self._image.topics())
        if not topics:
            return None
        topic = self._dice.choice(topics)
        return topic.name, self._dice.choice(list(topic.partitions))

    def isr(self) -> str | None:
        place = self._place()
        topic = self._image.topic(place[0]) if place is not None else None
        if place is None or topic is None:
            return None
        partition = topic.partitions[place[1]]
        leader = partition.leader if self._dice.random() < 0.95 else self._dice.choice(BROKERS)
        if leader not in self._image.brokers:
            return None
        among = partition.replicas if self._dice.random() < 0.95 else BROKERS
        isr = list(dict.fromkeys([str(leader), *self._replicas(among, 1).split(",")]))
        epochs = self._dice.choices(
            ["", " leader_epoch=1", " leader_epoch=-1", " partition_epoch=1", " partition_epoch=-1", " broker_epoch=1"],
            [20, 1, 1, 1, 1, 1],
        )[0]
        recovering = self._dice.choices(["", " recovering=1"], [9, 1])[0]
        return f"isr {leader} {place[0]} {place[1]} {','.join(isr)}{epochs}{recovering}"

    def elect(self) -> str | None:
        place = self._place()
        return None if place is None else f"elect {self._dice.choice(['preferred', 'unclean'])} {place[0]} {place[1]}"

    def reassign(self) -> str | None:
        place = self._place()
        if place is None:
            return None
        target = "cancel" if self._dice.random() < 0.3 else self._replicas(BROKERS, 1)
        return f"reassign {place[0]} {place[1]} {target}"

    def unregister(self) -> str:
        return f"unregister {self._dice.choice(BROKERS)}"


def compare(seed: int, count: int, quorum: Quorum, folder: Path) -> None:
    """Sends this number of steps to both controllers."""
    apache, own = ApacheScenario(quorum), OwnScenario(folder)
    steps = Steps(seed, own.image)
    for number in range(count):
        line = steps.next()
        command = words(line)
        apache.effects.clear()
        own.effects.clear()
        for scenario in (apache, own):
            COMMANDS[command.plain[0]](scenario, Words(command.plain[1:], command.named))
        apache.read()
        at = f"seed {seed}, step {number}: {line}"
        assert normal(own.effects) == normal(apache.effects), at
        assert cluster_of(own.image) == cluster_of(apache.image), at


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[Quorum]:
    settings = {"metadata.max.idle.interval.ms": "0", "broker.heartbeat.interval.ms": "60000"}  # half is a deadline
    quorum = Quorum(tmp_path, session_ms=SESSION_MS, settings=settings)
    quorum.controller.start()
    yield quorum
    quorum.controller.stop()
    quorum.controller.forget()


def test_it_decides_as_apache_kafka_s_controller(quorum: Quorum, tmp_path: Path) -> None:
    compare(1, 290, quorum, tmp_path / "own")
