"""Creates and describes topics of a cluster, with librdkafka's admin client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bench.clusters.cluster import ADMIN_TIMEOUT_S, ASK_AGAIN_S, BenchCluster, until

PARTITIONS_AT_ONCE = 3_000
"""Partitions in one request: a controller rejects a request that needs more than ten thousand records of metadata."""


class Led(NamedTuple):
    """A partition as a broker describes it."""

    leader: int
    in_sync: frozenset[int]


def admin(bootstrap: str):  # type: ignore[no-untyped-def]  # librdkafka's classes have no types
    """Returns a client."""
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, "socket.timeout.ms": 60_000})


def create(
    cluster: BenchCluster,
    topic: str,
    assignments: Sequence[Sequence[int]],
    configs: Mapping[str, str] | None = None,
    look_s: float = ASK_AGAIN_S,
) -> None:
    """Creates a topic with these replicas, and waits until all of them are in sync. Raises KafkaException."""
    from confluent_kafka.cimpl import NewPartitions, NewTopic

    client = admin(cluster.bootstrap)
    first = [list(replicas) for replicas in assignments[:PARTITIONS_AT_ONCE]]
    new = NewTopic(topic, num_partitions=len(first), replica_assignment=first, config=dict(configs or {}))
    for made in client.create_topics([new], operation_timeout=ADMIN_TIMEOUT_S).values():
        made.result(ADMIN_TIMEOUT_S)
    for begin in range(PARTITIONS_AT_ONCE, len(assignments), PARTITIONS_AT_ONCE):
        more = [list(replicas) for replicas in assignments[begin : begin + PARTITIONS_AT_ONCE]]
        grown = NewPartitions(topic, begin + len(more), replica_assignment=more)
        for added in client.create_partitions([grown], operation_timeout=ADMIN_TIMEOUT_S).values():
            added.result(ADMIN_TIMEOUT_S)
    wait_in_sync(cluster, topic, assignments, look_s)


def delete(cluster: BenchCluster, topic: str) -> None:
    """Deletes a topic. Raises KafkaException."""
    client = admin(cluster.bootstrap)  # the client ends with its last reference, and its requests with it
    for deleted in client.delete_topics([topic], operation_timeout=ADMIN_TIMEOUT_S).values():
        deleted.result(ADMIN_TIMEOUT_S)


def partitions(client: object, topic: str) -> dict[int, Led]:
    """Returns the partitions of a topic, as a broker describes them."""
    listed = client.list_topics(topic, ADMIN_TIMEOUT_S).topics[topic].partitions  # type: ignore[attr-defined]
    return {index: Led(partition.leader, frozenset(partition.isrs)) for index, partition in listed.items()}


def are_served(client: object, topic: str) -> bool:
    """True if the leader of each partition serves it. The client finds the leaders with its first request."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import OffsetSpec

    latest = {TopicPartition(topic, index): OffsetSpec.latest() for index in partitions(client, topic)}
    try:
        for listed in client.list_offsets(latest, request_timeout=ADMIN_TIMEOUT_S).values():  # type: ignore[attr-defined]
            listed.result(ADMIN_TIMEOUT_S)
    except KafkaException:
        return False
    return True


def wait_in_sync(
    cluster: BenchCluster, topic: str, assignments: Sequence[Sequence[int]], look_s: float = ASK_AGAIN_S
) -> None:
    """Waits until every broker has all replicas in sync in its metadata. Raises TimedOut."""
    expected = [frozenset(replicas) for replicas in assignments]
    for address in cluster.addresses.values():
        client = admin(address)

        def all_in_sync(client: object = client) -> bool:
            now = partitions(client, topic)
            return [now[index].in_sync for index in sorted(now)] == expected

        until(f"all replicas of {topic} are in sync", all_in_sync, look_s)
