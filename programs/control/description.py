"""Describes this broker and the topics of its cluster."""

from __future__ import annotations

import os
from collections.abc import Sequence

from broker.config.listeners import ListenerAddress
from broker.dispatch.broker import Broker
from broker.network.endpoints import address
from broker.network.listener import Listener
from coordinator.cluster.topics import names
from coordinator.cluster.topics.topic import Topic
from programs.control.json_values import uuid_text
from programs.control.record_view import offsets_of

NO_REPLICA_HERE = dict.fromkeys(
    ("start_offset", "high_watermark", "last_stable_offset", "end_offset", "size_bytes"), None
)


def describe_broker(
    broker: Broker, listeners: Sequence[Listener], advertised: Sequence[ListenerAddress], version: str
) -> dict[str, object]:
    """Returns the broker's description for JSON."""
    return {
        "version": version,
        "profile": broker.config.odradek_profile,
        "pid": os.getpid(),
        "node_id": broker.node.node_id,
        "cluster_id": broker.image.cluster_id,
        "listeners": {listener.name: address(listener) for listener in advertised},
        "connections": sum(len(listener.connections) for listener in listeners),
        "topics": [
            describe_topic(broker, topic) for topic in sorted(broker.image.topics(), key=lambda topic: topic.name)
        ],
    }


def describe_topic(broker: Broker, topic: Topic) -> dict[str, object]:
    """Returns a topic's description for JSON."""
    return {
        "topic": topic.name,
        "topic_id": uuid_text(topic.topic_id),
        "internal": names.is_internal(topic.name),
        "partitions": [describe_partition(broker, topic, index) for index in sorted(topic.partitions)],
    }


def describe_partition(broker: Broker, topic: Topic, index: int) -> dict[str, object]:
    """Returns a partition's description for JSON."""
    registration, here = topic.partitions[index], broker.replicas.topic(topic.name).get(index)
    offsets = NO_REPLICA_HERE if here is None else {**offsets_of(here), "size_bytes": here.size_bytes}
    return {
        "partition": index,
        "leader": registration.leader,
        "leader_epoch": registration.leader_epoch,
        "replicas": list(registration.replicas),
        "isr": list(registration.isr),
        **{name: value for name, value in offsets.items() if name != "partition"},
    }
