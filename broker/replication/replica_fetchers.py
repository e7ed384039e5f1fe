"""All fetchers of a broker, by leader and fetcher id, with the partitions that each follows.

Source: Kafka's AbstractFetcherManager and ReplicaManager.applyLocalFollowersDelta.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from broker.replica.partition import Partition
from broker.replication.environment import ReplicationEnvironment
from broker.replication.replica_fetcher import ReplicaFetcher, key_of
from coordinator.cluster.topics.topic import NO_LEADER
from coordinator.replication.roles import Following
from coordinator.replication.session import PartitionKey
from protocol.java_hash import java_hash
from protocol.types import TopicPartition


class FetcherKey(NamedTuple):
    """The key of a leader's fetcher."""

    leader_id: int
    fetcher_id: int


class ReplicaFetchers:
    """Moves a partition from fetcher to fetcher when its role changes."""

    def __init__(self, environment: ReplicationEnvironment) -> None:
        self._environment = environment
        self._fetchers: dict[FetcherKey, ReplicaFetcher] = {}
        self._homes: dict[PartitionKey, FetcherKey] = {}
        self._count = self._configured_count
        self._is_stopped = False

    @property
    def _configured_count(self) -> int:
        return self._environment.config.effective.num_replica_fetchers

    def config_changed(self, partitions: Iterable[Partition]) -> None:
        """Distributes the partitions again if num.replica.fetchers has changed."""
        if self._count != self._configured_count:
            self._count = self._configured_count
            for partition in partitions:
                self.role_changed(partition)

    def fetchers(self) -> list[ReplicaFetcher]:
        """Returns the running fetchers."""
        return list(self._fetchers.values())

    def role_changed(self, partition: Partition) -> None:
        """Follows a partition in the epoch of its role, or stops following it. The log's end is read after the former
        fetcher has released the partition (KAFKA-13266).
        """
        role = partition.role
        if isinstance(role, Following) and role.leader_id != NO_LEADER and not partition.gone and not self._is_stopped:
            self._follow(partition, role.leader_id)
        else:
            self._unfollow(key_of(partition))

    def stop(self) -> None:
        """Stops all fetchers, for good."""
        self._is_stopped = True
        for fetcher in self._fetchers.values():
            fetcher.stop()
        self._fetchers.clear()
        self._homes.clear()

    def _follow(self, partition: Partition, leader_id: int) -> None:
        key, home = key_of(partition), FetcherKey(leader_id, self._fetcher_id(partition.name))
        if self._homes.get(key, home) != home:
            self._unfollow(key)
        self._homes[key] = home
        fetcher = self._fetchers.get(home)
        if fetcher is None:
            fetcher = self._fetchers[home] = ReplicaFetcher(*home, self._environment)
            fetcher.start()
        fetcher.follow(partition)

    def _unfollow(self, key: PartitionKey) -> None:
        home = self._homes.pop(key, None)
        if home is None:
            return
        fetcher = self._fetchers[home]
        fetcher.unfollow(key)
        if fetcher.is_idle:
            del self._fetchers[home]
            fetcher.stop()

    def _fetcher_id(self, name: TopicPartition) -> int:
        """Returns the id of the partition's fetcher; the partitions of a topic are spread over all fetchers of the
        leader.
        """
        return (31 * java_hash(name.topic) + name.partition) % self._count
