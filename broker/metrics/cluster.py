"""The cluster as this node sees it: the controller's metrics, and kafka_exporter's brokers and topics.

As in Kafka, only the controller reports partitions without a leader, so that the sum over all brokers is correct.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.metrics.exposition import Family, counter, gauge, labels
from broker.metrics.scrape import Breaks
from broker.metrics.sources import ProcessSources, Sources
from coordinator.cluster.changes import Change, PartitionChanged
from coordinator.cluster.topics.topic import NO_LEADER, PartitionRegistration

CONTROLLER = "kafka_controller_kafkacontroller"


class UncleanElections:
    """Counts the elections of leaders that were not in sync, since the start. Subscribed to changes of the image."""

    def __init__(self) -> None:
        self.count = 0

    def note(self, change: Change) -> None:
        if isinstance(change, PartitionChanged) and is_unclean(change.before, change.after):
            self.count += 1


def is_unclean(before: PartitionRegistration, after: PartitionRegistration) -> bool:
    """True if the new leader was neither in sync nor an eligible leader replica."""
    is_elected = after.leader not in (NO_LEADER, before.leader)
    return is_elected and after.leader not in before.isr and after.leader not in before.elr


class PartitionStates:
    """Counts of all partitions, for the controller's metrics."""

    def __init__(self) -> None:
        self.partitions = 0
        self.offline = 0
        self.not_preferred = 0

    def add(self, registration: PartitionRegistration) -> None:
        self.partitions += 1
        self.offline += registration.leader == NO_LEADER
        self.not_preferred += registration.leader != registration.preferred_leader


async def partition_states(sources: ProcessSources, breaks: Breaks) -> PartitionStates:
    states = PartitionStates()
    for topic in list(sources.host.image.topics()):
        for registration in topic.partitions.values():
            states.add(registration)
        await breaks.next()
    return states


def controller_families(
    sources: ProcessSources, states: PartitionStates, unclean: UncleanElections
) -> Iterator[Family]:
    """Yields the controller's metrics on the controller; on other nodes only that the node isn't the controller."""
    yield gauge(f"{CONTROLLER}_activecontrollercount", "1 on the controller.", [("", int(sources.is_controller))])
    if not sources.is_controller:
        return
    image = sources.host.image
    brokers = image.brokers.values()
    fenced = sum(registration.fenced for registration in brokers)
    leaving = sum(registration.in_controlled_shutdown for registration in brokers)
    yield gauge(f"{CONTROLLER}_activebrokercount", "Brokers that are unfenced.", [("", len(brokers) - fenced)])
    yield gauge(f"{CONTROLLER}_fencedbrokercount", "Brokers that are fenced.", [("", fenced)])
    yield gauge(f"{CONTROLLER}_controlledshutdownbrokercount", "Brokers that are shutting down.", [("", leaving)])
    yield gauge(f"{CONTROLLER}_globaltopiccount", "Topics.", [("", len(image.topic_names()))])
    yield gauge(f"{CONTROLLER}_globalpartitioncount", "Partitions.", [("", states.partitions)])
    yield gauge(f"{CONTROLLER}_offlinepartitionscount", "Partitions without a leader.", [("", states.offline)])
    yield gauge(
        f"{CONTROLLER}_preferredreplicaimbalancecount",
        "Partitions that are not led by their first replica.",
        [("", states.not_preferred)],
    )
    yield counter(
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        "Elections of leaders that were not in sync.",
        [("", unclean.count)],
    )


def exporter_families(sources: Sources) -> Iterator[Family]:
    """Yields brokers and topics under kafka_exporter's names."""
    broker = sources.broker
    image, listener = broker.image, broker.config.inter_broker_listener
    alive = [registration for registration in image.brokers.values() if not registration.fenced]
    yield gauge("kafka_brokers", "Brokers of the cluster that are unfenced.", [("", len(alive))])
    addresses = ((registration.broker_id, registration.endpoint(listener)) for registration in alive)
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
    yield gauge("kafka_topic_partitions", "Partitions of a topic whose first partition is led here.", led_here)
