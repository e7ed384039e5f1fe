"""One pass over the partitions of a fetch: what each gives, within what is left of the bytes that the answer may have.

The first partition that has anything gives one whole batch, however large; others may end within a batch, which clients
drop. Source: kafka.server.ReplicaManager.readFromLog.
"""

from __future__ import annotations

from librt.strings import read_i32_be

from broker.fetch.doubtful import checked
from broker.fetch.gathered import Gathered
from broker.fetch.partition import FetchedPartition
from broker.fetch.request import FIRST_WHOLE_BATCH_VERSION, ParsedFetch
from broker.replica.partition import Partition
from broker.replica.replica import READ_COMMITTED
from broker.replica.replicas import Replicas
from broker.replica.roles import NO_EPOCH
from protocol.errors import KafkaError
from protocol.records.batch import AT_LENGTH, LOG_OVERHEAD


def gather(replicas: Replicas, request: ParsedFetch, partitions: list[FetchedPartition], is_warm: bool) -> Gathered:
    """Reads every partition once. With `is_warm`, what would wait for a disk has been read ahead."""
    by_key = replicas.by_key
    gathered = Gathered(partitions, request.max_bytes)
    key: bytes | None = None
    led: dict[int, Partition] | None = None
    for asked in partitions:
        asked.clear()
        if asked.key is not key:
            key = asked.key
            led = by_key.get(key)
        try:
            partition = usual(led, request, asked)
            if partition is None:
                partition = checked(replicas, request, asked)
            if partition is not None:
                read(request, partition, asked, gathered, is_warm)
                continue
        except KafkaError as error:
            asked.fail(error)
        gathered.note(asked)
    if request.replica is not None:
        request.replica.is_noted = True
    return gathered


def quiet(replicas: Replicas, request: ParsedFetch, partitions: list[FetchedPartition]) -> list[Partition] | None:
    """The partitions, if there is nothing to read in any of them. A consumer that keeps up waits for each record: the
    answers of all its partitions would be made for each, only to be thrown away."""
    by_key = replicas.by_key
    result: list[Partition] = []
    key: bytes | None = None
    led: dict[int, Partition] | None = None
    for asked in partitions:
        if asked.key is not key:
            key = asked.key
            led = by_key.get(key)
        partition = usual(led, request, asked)
        if partition is None or not partition.ends_at(asked.fetch_offset):
            return None
        result.append(partition)
    return result


def usual(led: dict[int, Partition] | None, request: ParsedFetch, asked: FetchedPartition) -> Partition | None:
    """The partition, if it is led here in the epoch that the client thinks of, and it answers with records; None where
    that is not as certain. `led` are the topic's that are led here."""
    if led is None or asked.last_fetched_epoch >= 0 or request.is_special:
        return None
    partition = led.get(asked.index)
    if partition is None:
        return None
    epoch = asked.current_leader_epoch
    if epoch != NO_EPOCH and epoch != partition.leader_epoch:
        return None
    asked.name = partition.name
    return partition


def read(
    request: ParsedFetch, partition: Partition, asked: FetchedPartition, gathered: Gathered, is_warm: bool
) -> None:
    """What the partition has. Raises OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR."""
    isolation_level = request.isolation_level
    partition.update_snapshot(asked, isolation_level)
    if isolation_level == READ_COMMITTED:
        asked.aborted = ()
    offset = asked.fetch_offset
    if offset != asked.end:  # else nothing is to be read, as for all who keep up
        max_bytes = min(asked.max_bytes, gathered.left)
        if max_bytes > 0 and not is_warm:
            cold = partition.cold_read(offset, max_bytes)
            if cold is not None:
                gathered.wait_for_disk(cold)
                gathered.use(max_bytes)
                return
        is_first = not gathered.size_bytes
        records = partition.read(asked, offset, max_bytes, is_first)
        if isolation_level == READ_COMMITTED:
            asked.aborted = partition.aborted_in(offset, records)
            if asked.aborted:
                gathered.is_plain = False
        if is_first or request.version < FIRST_WHOLE_BATCH_VERSION or not is_cut(records):
            asked.records = records
            size_bytes = len(records)
            gathered.size_bytes += size_bytes
            gathered.use(size_bytes)
    asked.replica = partition
    gathered.may_grow = True


def is_cut(records: memoryview) -> bool:
    """True where not even the first batch is whole."""
    if len(records) < LOG_OVERHEAD:
        return True
    length: int = read_i32_be(bytes(records[:LOG_OVERHEAD]), AT_LENGTH)
    return len(records) < LOG_OVERHEAD + length
