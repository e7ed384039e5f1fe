"""A leader's answers and a follower's log, as values."""

from __future__ import annotations

from coordinator.replication.fetcher import Fetcher, FetcherOptions, FollowerIdentity
from coordinator.replication.session import PartitionKey
from protocol.errors import ErrorCode
from protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from protocol.types import TopicPartition
from storage.epochs import EpochEnd

ME = FollowerIdentity(1, 70)
TOPIC_ID = bytes(15) + b"\x07"
OTHER_ID = bytes(15) + b"\x08"
EPOCH = 5
BACKOFF_MS = 1_000
SESSION = 99


class FollowerLogStub:
    """A log that consists of its offsets and epochs: (epoch, start offset)."""

    def __init__(self, end: int = 0, epochs: list[tuple[int, int]] | None = None, *, start: int = 0) -> None:
        self.log_start_offset = start
        self.log_end_offset = end
        self.high_watermark = start
        self.epochs = epochs if epochs is not None else [(EPOCH, start)]

    @property
    def last_leader_epoch(self) -> int:
        return self.epochs[-1][0] if self.epochs else -1

    def end_of_epoch(self, leader_epoch: int) -> EpochEnd:
        if not self.epochs or leader_epoch > self.last_leader_epoch:
            return EpochEnd(-1, -1)
        if leader_epoch == self.last_leader_epoch:
            return EpochEnd(leader_epoch, self.log_end_offset)
        later = next(number for number, (epoch, _) in enumerate(self.epochs) if epoch > leader_epoch)
        return EpochEnd(self.epochs[later - 1][0] if later else leader_epoch, self.epochs[later][1])


def a_fetcher() -> Fetcher[FollowerLogStub]:
    return Fetcher(lambda: FetcherOptions(backoff_ms=BACKOFF_MS))


def key(index: int = 0, topic_id: bytes = TOPIC_ID) -> PartitionKey:
    return PartitionKey(topic_id, index)


def follow(
    fetcher: Fetcher[FollowerLogStub], log: FollowerLogStub, index: int = 0, epoch: int = EPOCH
) -> FollowerLogStub:
    assert fetcher.follow(key(index), TopicPartition("t", index), log, epoch) is None
    return log


def requested(request: FetchRequest | None) -> dict[int, FetchPartition]:
    """Returns the partitions in a request, by number."""
    assert request is not None
    return {one.partition: one for topic in request.topics for one in topic.partitions}


def forgotten(request: FetchRequest | None) -> list[int]:
    assert request is not None
    return [index for topic in request.forgotten_topics_data for index in topic.partitions]


def data(
    index: int = 0,
    code: ErrorCode = ErrorCode.NONE,
    *,
    records: bytes = b"",
    high_watermark: int = 0,
    log_start: int = 0,
    diverging: tuple[int, int] | None = None,
) -> PartitionData:
    epoch, end = diverging or (-1, -1)
    return PartitionData(
        partition_index=index,
        error_code=int(code),
        high_watermark=high_watermark,
        log_start_offset=log_start,
        diverging_epoch=EpochEndOffset(epoch=epoch, end_offset=end),
        records=memoryview(records),
    )


def answer(
    *partitions: PartitionData, session_id: int = SESSION, code: ErrorCode = ErrorCode.NONE, throttle_ms: int = 0
) -> FetchResponse:
    topics = [FetchableTopicResponse(topic_id=TOPIC_ID, partitions=list(partitions))] if partitions else []
    return FetchResponse(throttle_time_ms=throttle_ms, error_code=int(code), session_id=session_id, responses=topics)
