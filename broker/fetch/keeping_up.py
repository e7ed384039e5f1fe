"""Partitions of a caught-up follower that had all records at its last fetch too: the usual state of most partitions.

Their answer has only offsets, and only the time of the follower's fetch changes. Every other case is for `checks`,
which gives the same result for any partition; the tests compare both.
"""

from __future__ import annotations

from broker.fetch.partition import FetchedPartition
from broker.fetch.request import FIRST_TOPIC_ID_VERSION, ParsedFetch
from broker.replica.partition import Partition
from coordinator.replication.roles import Leading


def keeps_up(led: dict[int, Partition] | None, request: ParsedFetch, fetched: FetchedPartition) -> Partition | None:
    """Returns the partition of a caught-up follower, and records its fetch; None for any other. `led` has the topic's
    partitions that this broker leads."""
    replica = request.replica
    if led is None or replica is None or request.selector is not None or request.version < FIRST_TOPIC_ID_VERSION:
        return None
    partition = led.get(fetched.index)
    if partition is None:
        return None
    role, end = partition.role, partition.log_end_offset
    if (
        fetched.fetch_offset != end
        or fetched.current_leader_epoch != partition.leader_epoch
        or (fetched.last_fetched_epoch >= 0 and fetched.last_fetched_epoch != partition.last_leader_epoch)
        or not isinstance(role, Leading)
        or partition.high_watermark != end  # another follower blocks the commit, and may be fenced by now
    ):
        return None
    if not replica.is_noted and replica.is_stale(partition.rules):
        return None
    received_ms = None if replica.is_noted else replica.received_ms
    if not role.keeps_up(replica.broker_id, end, fetched.replica_log_start, replica.broker_epoch, received_ms):
        return None
    fetched.name = partition.name
    return partition
