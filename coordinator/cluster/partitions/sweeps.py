"""Periodic elections: of preferred leaders, and of unclean leaders if a topic allows them.

Source: Kafka's ReplicationControlManager.maybeBalancePartitionLeaders and maybeElectUncleanLeaders. As in KRaft,
`leader.imbalance.per.broker.percentage` has no effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.image import Image
from coordinator.cluster.partitions.change import Election, PartitionTarget
from coordinator.cluster.partitions.changes import PartitionChanges, Place, leaderless
from coordinator.cluster.record import ClusterResult
from coordinator.engine.result import Result
from protocol.metadata_records.topics import PartitionChangeRecord

MAX_ELECTIONS = 1_000
"""Maximum number of elections in one sweep. Its records are one batch, for which clients' requests must wait
(QuorumController).
"""


def elect_preferred_leaders(image: Image, configs: ConfigRules) -> tuple[ClusterResult, bool]:
    """Returns the decision that elects preferred leaders that are in sync, and True if there may be more to elect."""
    imbalanced = (
        (topic, index)
        for topic in image.topics()
        for index, partition in topic.partitions.items()
        if partition.leader != partition.preferred_leader
    )
    return _swept(_elected(PartitionChanges(image, configs), imbalanced, Election.PREFERRED))


def elect_unclean_leaders(image: Image, configs: ConfigRules) -> tuple[ClusterResult, bool]:
    """Returns the decision that elects unclean leaders of partitions without a leader, if the topic allows it, and True
    if there may be more to elect."""
    changes = PartitionChanges(image, configs)
    allowed = ((topic, index) for topic, index in leaderless(image) if changes.unclean_enabled(topic))
    return _swept(_elected(changes, allowed, Election.UNCLEAN))


def _elected(changes: PartitionChanges, places: Iterator[Place], election: Election) -> Iterator[PartitionChangeRecord]:
    for topic, index in places:
        record = changes.change(topic, index, PartitionTarget(), election)
        if record is not None:
            yield record


def _swept(elected: Iterator[PartitionChangeRecord]) -> tuple[ClusterResult, bool]:
    records = list(islice(elected, MAX_ELECTIONS))
    return Result(records), len(records) == MAX_ELECTIONS
