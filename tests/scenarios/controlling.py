"""Scenario transcripts of a controller with many brokers: their requests and the time; records, answers and duties.

    register 1 2 3
    beat 1 2 3
    topic orders 1,2,3
    isr 1 orders 0 1,2
    advance 9001

The controller is the real one, over a log on disk. Answers show what is not as in most answers.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TypeVar

from coordinator.cluster.brokers.features import SUPPORTED
from coordinator.cluster.image import Image
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.record import MetadataBatch, MetadataRecord
from coordinator.cluster.topics.topic import PartitionRegistration
from protocol.errors import KafkaError, error_code
from protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    TopicData,
)
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from protocol.metadata_records.log import NoOpRecord
from protocol.metadata_records.nodes import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from protocol.metadata_records.settings import ConfigRecord
from protocol.metadata_records.topics import PartitionChangeRecord, PartitionRecord
from protocol.types import TopicPartition, Uuid
from tests.broker.metadata.harness import MetadataHarness, now
from tests.coordinator.cluster import given
from tests.scenarios.runner import RULE, Words, steps, words

A = TypeVar("A")

CONTROLLER = 9
IDLE_MS = 1_000_000
"""Time between no-op records, long enough that they don't fill the transcripts."""

FLAGS = {0: "", 1: "+", -1: "-"}


def directory(name: str) -> Uuid:
    """Returns the id of a log directory of this name, such as 2a."""
    return name.encode().ljust(16, b".")


def named(directory_id: Uuid) -> str:
    return directory_id.rstrip(b".").decode() if directory_id[-1:] == b"." else f"?{directory_id[-1]}"


def joined(ids: Sequence[object]) -> str:
    return ",".join(map(str, ids)) or "nobody"


class ControllerScenario:
    """A controller without a broker of its own, and brokers by their ids."""

    def __init__(self, folder: Path) -> None:
        self.harness = MetadataHarness(folder)
        self.incarnations: dict[int, str] = {}
        self.effects: list[str] = []
        self.options = ClusterOptions(node_id=CONTROLLER, has_broker=False, metadata_max_idle_interval_ms=IDLE_MS)
        self.open()

    def open(self) -> None:
        self.metadata = self.harness.open(self.options, cluster_id="the-cluster-id-------w", register=False)
        self.metadata.metadata_log.listen(self.committed)
        self.controller = self.metadata.controller

    @property
    def image(self) -> Image:
        return self.metadata.image

    def committed(self, batch: MetadataBatch) -> None:
        self.effects += (text for record in batch.records if (text := self.record(record)))

    def record(self, record: MetadataRecord) -> str:
        if isinstance(record, PartitionRecord):
            return self.partition_record(record)
        if isinstance(record, PartitionChangeRecord):
            return self.partition_change(record)
        if isinstance(record, RegisterBrokerRecord):
            return f"record broker {record.broker_id} registered" + ("" if record.fenced else " unfenced")
        if isinstance(record, BrokerRegistrationChangeRecord):
            return self.broker_change(record)
        if isinstance(record, UnregisterBrokerRecord):
            return f"record broker {record.broker_id} gone"
        if isinstance(record, ConfigRecord):
            return f"record config {record.resource_name} {record.name}={record.value}"
        return "record no-op" if isinstance(record, NoOpRecord) else ""

    def place(self, topic_id: Uuid, index: int) -> str:
        topic = self.image.topic_by_id(topic_id)
        assert topic is not None
        return f"{topic.name}-{index}"

    def partition_record(self, record: PartitionRecord) -> str:
        place = self.place(record.topic_id, record.partition_id)
        isr = "" if record.isr == record.replicas else f" isr={joined(record.isr)}"
        leader = "" if record.leader == record.replicas[0] else f" leader={record.leader}"
        return f"record {place} replicas={joined(record.replicas)}{isr}{leader}"

    def partition_change(self, record: PartitionChangeRecord) -> str:
        lists = {
            "isr": record.isr,
            "elr": record.eligible_leader_replicas,
            "last_known": record.last_known_elr,
            "replicas": record.replicas,
            "adding": record.adding_replicas,
            "removing": record.removing_replicas,
        }
        changed = [f"{name}={joined(ids)}" for name, ids in lists.items() if ids is not None]
        if record.leader != -2:
            changed.insert(0, "leader=none" if record.leader == -1 else f"leader={record.leader}")
        if record.leader_recovery_state != -1:
            changed.append("recovering" if record.leader_recovery_state else "recovered")
        return f"record {self.place(record.topic_id, record.partition_id)} {' '.join(changed) or 'directories'}"

    def broker_change(self, record: BrokerRegistrationChangeRecord) -> str:
        flags = {"fenced": record.fenced, "stopping": record.in_controlled_shutdown}
        changed = [f"{FLAGS[flag]}{name}" for name, flag in flags.items() if flag]
        if record.log_dirs:
            changed.append(f"dirs={joined(list(map(named, record.log_dirs)))}")
        if record.cordoned_log_dirs is not None:
            changed.append(f"cordoned={joined(list(map(named, record.cordoned_log_dirs)))}")
        return f"record broker {record.broker_id} {' '.join(changed)}"

    def answer(self, who: str, request: Coroutine[object, None, A], shown_as: Callable[[A], str]) -> None:
        try:
            self.effects.append(f"{who} <- {shown_as(now(request))}")
        except KafkaError as error:
            self.effects.append(f"{who} <- {error.code.name}")

    def pass_time(self, by_ms: int) -> None:
        """Advances the time from timer to timer."""
        self.harness.clock.advance(by_ms)


def register(scenario: ControllerScenario, args: Words) -> None:
    """Registers brokers: `register 1 2`, each with a directory such as 1a; `run=` is the incarnation, `previous=` the
    epoch of its last run."""
    for broker_id in map(int, args.plain):
        run = args.named.get("run", "first")
        broker = scenario.image.brokers.get(broker_id)
        before = broker.epoch if broker is not None and args.named.get("previous") == "same" else -1
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=scenario.image.cluster_id,
            incarnation_id=f"{broker_id}-{run}".encode().ljust(16, b"."),
            listeners=[Listener(name="PLAINTEXT", host="localhost", port=9092 + broker_id, security_protocol=0)],
            features=[
                Feature(name=name, min_supported_version=levels.min_level, max_supported_version=levels.max_level)
                for name, levels in SUPPORTED.items()
            ],
            rack=args.named.get("rack"),
            log_dirs=[directory(name) for name in args.list("dirs", f"{broker_id}a")],
            previous_broker_epoch=before,
        )
        scenario.answer(
            str(broker_id), scenario.controller.submit(request, BrokerRegistrationResponse), lambda _: "registered"
        )


def beat(scenario: ControllerScenario, args: Words) -> None:
    """Sends heartbeats: `beat 1 2`, of brokers that have read everything, or up to `read=`; `want=stop,fence`."""
    wants = args.list("want")
    for broker_id in map(int, args.plain):
        broker = scenario.image.brokers.get(broker_id)
        behind = args.int("behind", 0)
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=args.int("epoch", -1 if broker is None else broker.epoch),
            current_metadata_offset=scenario.image.offset - behind,
            want_fence="fence" in wants,
            want_shut_down="stop" in wants,
            offline_log_dirs=[directory(name) for name in args.list("offline")],
            cordoned_log_dirs=[directory(name) for name in args.list("cordoned")] if "cordoned" in args.named else None,
        )

        def shown_as(response: object) -> str:
            flags = {"is_caught_up": "caught up", "is_fenced": "fenced", "should_shut_down": "may stop"}
            return ", ".join(text for flag, text in flags.items() if getattr(response, flag)) or "behind"

        scenario.answer(str(broker_id), scenario.controller.submit(request, BrokerHeartbeatResponse), shown_as)


def topic(scenario: ControllerScenario, args: Words) -> None:
    """Creates a topic: `topic orders 1,2 2,3` has the replicas of each partition, and configs; or use `partitions=`
    `factor=`."""
    name, *replicas = args.plain
    configs = {key: value for key, value in args.named.items() if "." in key}
    assignments = {at: list(map(int, text.split(","))) for at, text in enumerate(replicas)}
    creatable = given.creatable(name, args.int("partitions", -1), args.int("factor", -1), configs, assignments)
    request = CreateTopicsRequest(topics=[creatable])
    scenario.answer(
        name,
        scenario.controller.submit(request, CreateTopicsResponse),
        lambda answer: error_code(answer.topics[0].error_code).name,
    )


def isr(scenario: ControllerScenario, args: Words) -> None:
    """Proposes an ISR: `isr 1 orders 0 1,2` is broker 1's proposal, with the current epochs unless arguments set
    others."""
    leader, name, index, replicas = args.plain
    partition = scenario.image.partition(TopicPartition(name, int(index)))
    topic_of = scenario.image.topic(name)
    assert partition is not None
    assert topic_of is not None
    brokers = scenario.image.brokers
    epochs = [int(epoch) for epoch in args.list("epochs")] or [
        brokers[int(replica)].epoch if int(replica) in brokers else -1 for replica in replicas.split(",")
    ]
    proposed = PartitionData(
        partition_index=int(index),
        leader_epoch=partition.leader_epoch + args.int("leader_epoch", 0),
        new_isr_with_epochs=[
            BrokerState(broker_id=int(one), broker_epoch=int(epoch))
            for one, epoch in zip(replicas.split(","), epochs, strict=True)
        ],
        leader_recovery_state=args.int("recovering", 0),
        partition_epoch=partition.partition_epoch + args.int("partition_epoch", 0),
    )
    request = AlterPartitionRequest(
        broker_id=int(leader),
        broker_epoch=brokers[int(leader)].epoch + args.int("broker_epoch", 0),
        topics=[TopicData(topic_id=topic_of.topic_id, partitions=[proposed])],
    )

    def shown_as(response: object) -> str:
        answered = response.topics[0].partitions[0]  # type: ignore[attr-defined]
        if answered.error_code:
            return error_code(answered.error_code).name
        return f"leader={answered.leader_id} isr={joined(answered.isr)}"

    scenario.answer(leader, scenario.controller.submit(request, AlterPartitionResponse), shown_as)


def elect(scenario: ControllerScenario, args: Words) -> None:
    """Elects leaders: `elect preferred orders 0`."""
    kind, name, *indexes = args.plain
    request = ElectLeadersRequest(
        election_type=("preferred", "unclean").index(kind),
        topic_partitions=[TopicPartitions(topic=name, partitions=list(map(int, indexes)))],
        timeout_ms=1_000,
    )
    scenario.answer(
        "admin",
        scenario.controller.submit(request, ElectLeadersResponse),
        lambda answer: ", ".join(
            error_code(one.error_code).name
            for result in answer.replica_election_results
            for one in result.partition_result
        ),
    )


def reassign(scenario: ControllerScenario, args: Words) -> None:
    """Reassigns a partition: `reassign orders 0 2,3`, or `reassign orders 0 cancel`."""
    name, index, target = args.plain
    replicas = None if target == "cancel" else list(map(int, target.split(",")))
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=1_000,
        topics=[
            ReassignableTopic(
                name=name, partitions=[ReassignablePartition(partition_index=int(index), replicas=replicas)]
            )
        ],
    )
    scenario.answer(
        "admin",
        scenario.controller.submit(request, AlterPartitionReassignmentsResponse),
        lambda answer: error_code(answer.responses[0].partitions[0].error_code).name,
    )


def unregister(scenario: ControllerScenario, args: Words) -> None:
    for broker_id in map(int, args.plain):
        request = UnregisterBrokerRequest(broker_id=broker_id)
        scenario.answer(
            "admin", scenario.controller.submit(request, UnregisterBrokerResponse), lambda _: "unregistered"
        )


def feature(scenario: ControllerScenario, args: Words) -> None:
    """Sets a feature level, up or down: `feature group.version=0`."""
    updates = [
        FeatureUpdateKey(feature=name, max_version_level=int(level), upgrade_type=2 if "down" in args.plain else 1)
        for name, level in args.named.items()
    ]
    request = UpdateFeaturesRequest(feature_updates=updates)
    scenario.answer(
        "admin",
        scenario.controller.submit(request, UpdateFeaturesResponse),
        lambda answer: error_code(answer.error_code).name,
    )


def config(scenario: ControllerScenario, args: Words) -> None:
    """Sets a config: `config orders unclean.leader.election.enable=true`."""
    (name,) = args.plain
    records = [given.topic_config(name, key, value) for key, value in args.named.items()]
    now(scenario.controller.write(records))  # type: ignore[attr-defined]


def advance(scenario: ControllerScenario, args: Words) -> None:
    scenario.pass_time(int(args.plain[0]))


def live(scenario: ControllerScenario, args: Words) -> None:
    """Sends heartbeats of brokers for a time: `live 1 2 60000`, every two seconds; the answers are not shown."""
    *brokers, by_ms = args.plain
    for _ in range(int(by_ms) // 2_000):
        scenario.pass_time(2_000)
        shown = len(scenario.effects)
        beat(scenario, Words(brokers, {}))
        del scenario.effects[shown:]


def suspend(scenario: ControllerScenario, args: Words) -> None:
    """Stops the controller's process for a time: `suspend 20000`; afterwards it handles what is due."""
    scenario.harness.clock.time_ms += int(args.plain[0])
    scenario.harness.clock.ring()


def restart(scenario: ControllerScenario, _: Words) -> None:
    """Kills the controller, and starts another from its log."""
    for timer in scenario.harness.clock.timers:
        timer.cancel()
    scenario.open()


def show(scenario: ControllerScenario, args: Words) -> None:
    """Shows the partitions of a topic: `show orders`."""
    for name in args.plain:
        shown = scenario.image.topic(name)
        assert shown is not None
        for index, partition in shown.partitions.items():
            scenario.effects.append(f"{name}-{index} {state(partition)}")


def state(partition: PartitionRegistration) -> str:
    lists = {"elr": partition.elr, "last_known": partition.last_known_elr, "adding": partition.adding_replicas}
    lists |= {"removing": partition.removing_replicas}
    others = "".join(f" {name}={joined(ids)}" for name, ids in lists.items() if ids)
    leader = "none" if partition.leader < 0 else partition.leader
    return (
        f"replicas={joined(partition.replicas)} leader={leader} epoch={partition.leader_epoch} "
        f"isr={joined(partition.isr)}{others}"
    )


COMMANDS: dict[str, Callable[[ControllerScenario, Words], None]] = {
    command.__name__: command
    for command in (
        register, beat, topic, isr, elect, reassign, unregister, feature, config, advance, live, suspend, restart, show
    )
}  # fmt: skip


def play(text: str, folder: Path) -> str:
    """Returns the transcript with its commands and their present effects."""
    scenario = ControllerScenario(folder)
    scenario.effects.clear()
    blocks = []
    for step in steps(text):
        for line in step.commands:
            command = words(line)
            COMMANDS[command.plain[0]](scenario, Words(command.plain[1:], command.named))
        blocks.append("\n".join([*step.before, *step.commands, RULE, *scenario.effects]))
        scenario.effects.clear()
    return "\n\n".join(blocks) + "\n"
