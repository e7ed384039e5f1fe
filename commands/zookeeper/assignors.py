"""The assignors of consumer groups in ZooKeeper, by partition.assignment.strategy. Pure.

Every member computes the same assignment from the znodes, and claims its own part. Source:
kafka.consumer.PartitionAssignor: RangeAssignor, RoundRobinAssignor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from commands.zookeeper.consumers import OldMember, threads_by_topic
from protocol.java_hash import java_hash
from protocol.types import TopicPartition

Owners = dict[TopicPartition, str]
"""The thread that owns each partition."""

Strategy = Callable[[Sequence[OldMember], Mapping[str, Sequence[int]]], Owners]


def owners_by_range(members: Sequence[OldMember], partitions: Mapping[str, Sequence[int]]) -> Owners:
    """Returns the thread of each partition. The sorted threads get equal runs of each topic's partitions; the first
    threads get one more if the division has a remainder."""
    owners: Owners = {}
    for topic, threads in threads_by_topic(members, partitions.keys()).items():
        for thread, run in runs(threads, sorted(partitions[topic])):
            owners |= {TopicPartition(topic, index): thread for index in run}
    return owners


def runs(threads: Sequence[str], partitions: Sequence[int]) -> Iterable[tuple[str, Sequence[int]]]:
    """Yields each thread's run of partitions."""
    least, extra = divmod(len(partitions), len(threads))
    start = 0
    for number, thread in enumerate(threads):
        end = start + least + (number < extra)
        yield thread, partitions[start:end]
        start = end


def owners_by_round_robin(members: Sequence[OldMember], partitions: Mapping[str, Sequence[int]]) -> Owners:
    """Returns the thread of each partition. All partitions, ordered by a hash of their names, go to the sorted threads
    in turn, each to the next thread that reads its topic.

    Consumers of Kafka 0.8 and 0.9 do so only if all of them read the same topics with equally many threads, and fail
    otherwise. Consumers of 1.1 hash other names."""
    readers = threads_by_topic(members, partitions.keys())
    threads = sorted({thread for names in readers.values() for thread in names})
    turns = _forever(threads)
    in_turn = sorted(
        (TopicPartition(topic, index) for topic in sorted(readers) for index in partitions[topic]), key=_hash
    )
    return {partition: next(thread for thread in turns if thread in readers[partition.topic]) for partition in in_turn}


def _forever(threads: Sequence[str]) -> Iterator[str]:
    while threads:
        yield from threads


def _hash(partition: TopicPartition) -> int:
    return java_hash(f"[{partition.topic},{partition.partition}]")


STRATEGIES: Final[Mapping[str, Strategy]] = {"range": owners_by_range, "roundrobin": owners_by_round_robin}
