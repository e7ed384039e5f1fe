"""Topics of a cluster, by librdkafka's admin client: made, and looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bench.clusters.cluster import ADMIN_TIMEOUT_S, ASK_AGAIN_S, BenchCluster, until

PARTITIONS_AT_ONCE = 3_000
"""A controller refuses ten thousand records of metadata in one request."""


class Led(NamedTuple):
    """A partition as a broker tells of it."""

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
    """Makes a topic with these replicas, and waits until all of them are in sync. Raises KafkaException."""
    from confluent_kafka.cimpl import NewPartitions, NewTopic

    client = admin(cluster.bootstrap)
    first = [list(one) for one in assignments[:PARTITIONS_AT_ONCE]]
    new = NewTopic(topic, num_partitions=len(first), replica_assignment=first, config=dict(configs or {}))
    for made in client.create_topics([new], operation_timeout=ADMIN_TIMEOUT_S).values():
        made.result(ADMIN_TIMEOUT_S)
    for begin in range(PARTITIONS_AT_ONCE, len(assignments), PARTITIONS_AT_ONCE):
        more = [list(one) for one in assignments[begin : begin + PARTITIONS_AT_ONCE]]
        grown = NewPartitions(topic, begin + len(more), replica_assignment=more)
        for added in client.create_partitions([grown], operation_timeout=ADMIN_TIMEOUT_S).values():
            added.result(ADMIN_TIMEOUT_S)
    wait_in_sync(cluster, topic, assignments, look_s)


def delete(cluster: BenchCluster, topic: str) -> None:
    """Deletes a topic. Raises KafkaException."""
    client = admin(cluster.bootstrap)  # which goes with its last reference, and its requests with it
    for deleted in client.delete_topics([topic], operation_timeout=ADMIN_TIMEOUT_S).values():
        deleted.result(ADMIN_TIMEOUT_S)


def partitions(client: object, topic: str) -> dict[int, Led]:
    """Returns the partitions of a topic, as a broker that is asked has them."""
    listed = client.list_topics(topic, ADMIN_TIMEOUT_S).topics[topic].partitions  # type: ignore[attr-defined]
    return {index: Led(one.leader, frozenset(one.isrs)) for index, one in listed.items()}


def are_served(client: object, topic: str) -> bool:
    """True where the leader of each partition answers for it. The client learns who leads from what it asks first."""
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
    """Waits until every broker has all replicas in sync. Raises TimedOut."""
    expected = [frozenset(one) for one in assignments]
    for address in cluster.addresses.values():
        client = admin(address)

        def all_in_sync(client: object = client) -> bool:
            now = partitions(client, topic)
            return [now[index].in_sync for index in sorted(now)] == expected

        until(f"all replicas of {topic} are in sync", all_in_sync, look_s)
