"""Who reads what in a group that meets in ZooKeeper, by each partition.assignment.strategy of that age. Pure.

Every member computes the same from what it reads in ZooKeeper, and takes its own part.
Source: kafka.consumer.PartitionAssignor: RangeAssignor, RoundRobinAssignor.
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
    """Returns the thread that each partition falls to: of each topic the sorted threads get equal runs of its
    partitions, the first ones one more where they do not come out even."""
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
    """Returns the thread that each partition falls to: all partitions, in the order of a hash of their names, go to the
    sorted threads in turn, each to the next one that reads its topic.

    Consumers of Kafka 0.8 and 0.9 do so only where all of them read the same topics by as many threads, and fail
    otherwise; those of 1.1 hash other names."""
    readers = threads_by_topic(members, partitions.keys())
    threads = sorted({thread for names in readers.values() for thread in names})
    turns = _forever(threads)
    in_turn = sorted(
        (TopicPartition(topic, index) for topic in sorted(readers) for index in partitions[topic]), key=_hash
    )
    return {one: next(thread for thread in turns if thread in readers[one.topic]) for one in in_turn}


def _forever(threads: Sequence[str]) -> Iterator[str]:
    while threads:
        yield from threads


def _hash(partition: TopicPartition) -> int:
    return java_hash(f"[{partition.topic},{partition.partition}]")


STRATEGIES: Final[Mapping[str, Strategy]] = {"range": owners_by_range, "roundrobin": owners_by_round_robin}
