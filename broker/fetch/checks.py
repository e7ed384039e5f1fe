"""The checks of a fetched partition that may answer with an error, a diverging epoch, or a preferred read replica."""

from __future__ import annotations

from broker.fetch.partition import FetchedPartition
from broker.fetch.request import FIRST_BATCH_VERSION, FetchingReplica, ParsedFetch
from broker.replica.partition import Partition
from broker.replica.read_replica import check_readable
from broker.replica.replica import READ_UNCOMMITTED
from broker.replica.replicas import Replicas
from coordinator.replication.roles import LeaderMoved
from coordinator.replication.truncation import diverging_epoch
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from storage.epochs import EpochEnd


def checked(replicas: Replicas, request: ParsedFetch, fetched: FetchedPartition) -> Partition | None:
    """Returns the partition to read; None if the answer is complete without a read. Raises the KafkaError of the
    answer."""
    denied = request.denied.get(fetched.key)
    if denied is ErrorCode.UNKNOWN_TOPIC_ID:
        fetched.miss(KafkaError(denied))
        return None
    if denied is not None:
        raise KafkaError(denied)
    try:
        partition = replicas.partition(topic_of(replicas, request, fetched), fetched.index)
    except LeaderMoved:
        raise
    except KafkaError as error:
        fetched.miss(error)
        return None
    check(request, fetched, partition)
    if request.selector is not None:
        preferred = request.selector.select(partition, fetched.fetch_offset)
        if preferred is not None:
            fetched.name = partition.name
            fetched.prefer(preferred)
            partition.update_snapshot(fetched, READ_UNCOMMITTED)
            return None
    end = divergence(partition, fetched)
    if end is None:
        fetched.name = partition.name
        note_progress(request.replica, partition, fetched)
        return partition
    fetched.diverge(end)
    partition.update_snapshot(fetched, READ_UNCOMMITTED)
    return None


def topic_of(replicas: Replicas, request: ParsedFetch, fetched: FetchedPartition) -> str | None:
    """Returns the topic's name; None for an unknown id. A session remembers the names of its topic ids."""
    if fetched.name is None:
        topic = replicas.name_of(fetched.key) if request.uses_topic_ids else fetched.key[1:].decode()
        if topic is None:
            return None
        fetched.name = TopicPartition(topic, fetched.index)
    return fetched.name.topic


def check(request: ParsedFetch, fetched: FetchedPartition, partition: Partition) -> None:
    """Raises INCONSISTENT_TOPIC_ID, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH,
    UNSUPPORTED_COMPRESSION_TYPE."""
    if request.uses_topic_ids and partition.topic_id != fetched.key:
        raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
    if request.only_from_leader:
        partition.check_leads(fetched.current_leader_epoch)
    else:
        check_readable(partition, fetched.current_leader_epoch)
    if request.replica is not None:
        partition.check_follower(request.replica.broker_id, fetched.current_leader_epoch)
    if request.version < FIRST_BATCH_VERSION and partition.config.compression_type == "zstd":
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


def divergence(partition: Partition, fetched: FetchedPartition) -> EpochEnd | None:
    """Returns the epoch and offset at which the fetcher's log diverges from this log; None if it doesn't (KIP-595).
    Raises OFFSET_OUT_OF_RANGE."""
    last_epoch, offset = fetched.last_fetched_epoch, fetched.fetch_offset
    if last_epoch < 0:
        return None
    if last_epoch == partition.last_leader_epoch and partition.log_start_offset <= offset <= partition.log_end_offset:
        return None  # the newest epoch ends at the log's end, as for every caught-up follower
    return diverging_epoch(partition, last_epoch, offset)


def note_progress(replica: FetchingReplica | None, partition: Partition, fetched: FetchedPartition) -> None:
    """Records a follower's log end offset, unless its fetch offset is out of range. The answer is made afterwards, with
    the high watermark that this may have advanced. Raises the errors of `Partition.fetched`."""
    offset = fetched.fetch_offset
    if replica is None or replica.is_noted or not partition.log_start_offset <= offset <= partition.log_end_offset:
        return
    partition.fetched(replica.fetch_of(fetched), fetched.current_leader_epoch)
