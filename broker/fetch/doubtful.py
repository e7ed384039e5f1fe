"""Partitions of a fetch that may have to answer with something else than records: an error, or where logs diverge."""

from __future__ import annotations

from broker.fetch.partition import FetchedPartition
from broker.fetch.request import FIRST_BATCH_VERSION, FetchingReplica, ParsedFetch
from broker.replica.followers import FollowerFetch, check_follower, follower_fetched
from broker.replica.partition import Partition
from broker.replica.replica import READ_UNCOMMITTED
from broker.replica.replicas import Replicas
from broker.replica.roles import LeaderMoved
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from storage.epochs import EpochEnd


def checked(replicas: Replicas, request: ParsedFetch, asked: FetchedPartition) -> Partition | None:
    """The partition, if it may be read; None if the answer says already why not. Raises KafkaError for an answer."""
    try:
        partition = replicas.partition(topic_of(replicas, request, asked), asked.index)
    except LeaderMoved:
        raise
    except KafkaError as error:
        asked.miss(error)
        return None
    check(request, asked, partition)
    end = diverging_epoch(partition, asked)
    if end is None:
        asked.name = partition.name
        note_progress(request.replica, partition, asked)
        return partition
    asked.diverge(end)
    partition.update_snapshot(asked, READ_UNCOMMITTED)
    return None


def topic_of(replicas: Replicas, request: ParsedFetch, asked: FetchedPartition) -> str | None:
    """The topic's name; None where its id led nowhere. A session remembers the names that its topic ids had."""
    if asked.name is None:
        topic = replicas.name_of(asked.key) if request.uses_topic_ids else asked.key[1:].decode()
        if topic is None:
            return None
        asked.name = TopicPartition(topic, asked.index)
    return asked.name.topic


def check(request: ParsedFetch, asked: FetchedPartition, partition: Partition) -> None:
    """Raises INCONSISTENT_TOPIC_ID, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH,
    UNSUPPORTED_COMPRESSION_TYPE."""
    if request.uses_topic_ids and partition.topic_id != asked.key:
        raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
    partition.check_leads(asked.current_leader_epoch)
    if request.replica is not None:
        check_follower(partition, request.replica.broker_id, asked.current_leader_epoch)
    if request.version < FIRST_BATCH_VERSION and partition.config.compression_type == "zstd":
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


def diverging_epoch(partition: Partition, asked: FetchedPartition) -> EpochEnd | None:
    """Where the fetcher's log left this one, if it did (KIP-595). Raises OFFSET_OUT_OF_RANGE."""
    if asked.last_fetched_epoch < 0:
        return None
    end = partition.end_of_epoch(asked.last_fetched_epoch)
    if end.epoch < 0 or end.end_offset < 0 or asked.fetch_offset < partition.log_start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    is_diverging = end.epoch < asked.last_fetched_epoch or end.end_offset < asked.fetch_offset
    return end if is_diverging else None


def note_progress(replica: FetchingReplica | None, partition: Partition, asked: FetchedPartition) -> None:
    """Notes how far a follower is, unless its offset is out of range. Its answer is made afterwards, and so has the
    high watermark that it moved itself. Raises as `follower_fetched` does."""
    offset = asked.fetch_offset
    if replica is None or replica.is_noted or not partition.log_start_offset <= offset <= partition.log_end_offset:
        return
    fetch = FollowerFetch(replica.broker_id, replica.broker_epoch, offset, asked.replica_log_start, replica.received_ms)
    follower_fetched(partition, fetch, asked.current_leader_epoch)
