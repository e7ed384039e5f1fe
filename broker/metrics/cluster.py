"""The cluster as this broker has it: the controller's view, the quorum, and kafka_exporter's brokers and topics.

Only the controller tells of partitions without a leader, as in Kafka, so that a sum over brokers is the cluster's.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.metrics.exposition import Family, counter, gauge, labels
from broker.metrics.scrape import Breaks
from broker.metrics.sources import Sources
from coordinator.cluster.changes import Change, PartitionChanged
from coordinator.cluster.topics.topic import NO_LEADER, PartitionRegistration

CONTROLLER = "kafka_controller_kafkacontroller"
RAFT = "kafka_server_raftmetrics"


class UncleanElections:
    """Counts the elections of leaders that were not in sync, since the start; a subscriber of changes."""

    def __init__(self) -> None:
        self.count = 0

    def note(self, change: Change) -> None:
        if isinstance(change, PartitionChanged) and is_unclean(change.before, change.after):
            self.count += 1


def is_unclean(before: PartitionRegistration, after: PartitionRegistration) -> bool:
    """True where the new leader was neither in sync nor eligible."""
    is_elected = after.leader not in (NO_LEADER, before.leader)
    return is_elected and after.leader not in before.isr and after.leader not in before.elr


class PartitionStates:
    """Counts of all partitions, as the controller knows them."""

    def __init__(self) -> None:
        self.partitions = 0
        self.offline = 0
        self.not_preferred = 0

    def add(self, registration: PartitionRegistration) -> None:
        self.partitions += 1
        self.offline += registration.leader == NO_LEADER
        self.not_preferred += registration.leader != registration.preferred_leader


async def partition_states(sources: Sources, breaks: Breaks) -> PartitionStates:
    states = PartitionStates()
    for topic in list(sources.broker.image.topics()):
        for registration in topic.partitions.values():
            states.add(registration)
        await breaks.next()
    return states


def controller_families(sources: Sources, states: PartitionStates, unclean: UncleanElections) -> Iterator[Family]:
    """Yields the controller's view where this node is the controller; of others just that they are not."""
    broker = sources.broker
    is_controller = not broker.config.has_remote_controllers
    yield gauge(f"{CONTROLLER}_activecontrollercount", "1 on the controller.", [("", int(is_controller))])
    if not is_controller:
        return
    brokers = broker.image.brokers.values()
    fenced = sum(registration.fenced for registration in brokers)
    yield gauge(f"{CONTROLLER}_activebrokercount", "Brokers that are unfenced.", [("", len(brokers) - fenced)])
    yield gauge(f"{CONTROLLER}_fencedbrokercount", "Brokers that are fenced.", [("", fenced)])
    yield gauge(f"{CONTROLLER}_globaltopiccount", "Topics.", [("", len(broker.image.topic_names()))])
    yield gauge(f"{CONTROLLER}_globalpartitioncount", "Partitions.", [("", states.partitions)])
    yield gauge(f"{CONTROLLER}_offlinepartitionscount", "Partitions without a leader.", [("", states.offline)])
    yield gauge(
        f"{CONTROLLER}_preferredreplicaimbalancecount",
        "Partitions that another replica leads than the first.",
        [("", states.not_preferred)],
    )
    yield counter(
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        "Leaders that were elected though they were not in sync.",
        [("", unclean.count)],
    )


def quorum_families(sources: Sources) -> Iterator[Family]:
    """Yields what this node knows of the quorum of controllers, and how far it is."""
    broker = sources.broker
    is_controller = not broker.config.has_remote_controllers
    log, leader_id = sources.metadata_log, broker.node.node_id if is_controller else broker.image.controller_id
    state = labels({"current_state": "leader" if is_controller else "observer"})
    yield gauge(f"{RAFT}_current_state", "The part of this node in the quorum, as a label.", [(state, 1)])
    yield gauge(f"{RAFT}_current_leader", "Controller that leads; -1 while none is known.", [("", leader_id)])
    yield gauge(f"{RAFT}_current_epoch", "Epoch of the quorum.", [("", log.epoch)])
    yield gauge(f"{RAFT}_high_watermark", "Offset behind the last committed record.", [("", log.high_watermark)])
    yield gauge(f"{RAFT}_log_end_offset", "Offset of the next record.", [("", log.end_offset)])


def exporter_families(sources: Sources) -> Iterator[Family]:
    """Yields brokers and topics by kafka_exporter's names."""
    broker = sources.broker
    image, listener = broker.image, broker.config.inter_broker_listener
    yield gauge("kafka_brokers", "Brokers of the cluster.", [("", len(image.brokers))])
    addresses = (
        (registration.broker_id, registration.endpoint(listener)) for registration in list(image.brokers.values())
    )
    infos = [
        (labels({"id": broker_id, "address": f"{endpoint.host}:{endpoint.port}"}), 1)
        for broker_id, endpoint in addresses
        if endpoint is not None
    ]
    yield gauge("kafka_broker_info", "A broker, with its address.", infos)
    led_here = (
        (f'{{topic="{topic.name}"}}', len(topic.partitions))
        for topic in list(image.topics())
        if 0 in topic.partitions and topic.partitions[0].leader == broker.node.node_id
    )
    yield gauge("kafka_topic_partitions", "Partitions of a topic whose first is led here.", led_here)
