"""A member's share session with one broker: its partitions, its next epoch, and its acknowledgements. Pure.

Source: KIP-932, org.apache.kafka.clients.consumer.internals.ShareSessionHandler, ShareCompletedFetch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from commands.records.output import PrintedRecord
from protocol.messages import share_acknowledge, share_fetch
from protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from protocol.messages.share_fetch import FetchPartition, FetchTopic, ForgottenTopic, PartitionData, ShareFetchRequest
from protocol.records.batch import TimestampType, iter_batches
from protocol.records.record import Record, read_records
from protocol.types import TopicPartition, Uuid

GAP: Final = 0
ACCEPT: Final = 1
RELEASE: Final = 2
REJECT: Final = 3
"""Acknowledgement types; a gap is an offset without a record."""

NEW_SESSION: Final = 0
END_OF_SESSION: Final = -1
LAST_EPOCH: Final = 0x7FFFFFFF

MAX_WAIT_MS: Final = 500
MAX_BYTES: Final = 8 * 1024 * 1024
MAX_RECORDS: Final = 500
"""max.poll.records of Kafka's share consumers: the most records that are acquired at a time."""
RECORD_LIMIT: Final = 1
"""Acquire mode in which the broker never returns more records than requested, if it supports it (KIP-1206)."""


class SharePlace(NamedTuple):
    """A share partition of the group, as requests name it."""

    topic_id: Uuid
    partition: int


class AcquiredRange(NamedTuple):
    """A range of offsets that this member has acquired, with its delivery count and its records."""

    first: int
    last: int
    deliveries: int
    records: dict[int, tuple[Record, TimestampType]]

    def printed(self, place: TopicPartition) -> list[PrintedRecord]:
        """Returns the records, in order of their offsets."""
        return [
            PrintedRecord(place, record, kind, self.deliveries) for _, (record, kind) in sorted(self.records.items())
        ]

    def acknowledgements(self, kind: int, printed: Collection[int]) -> list[int]:
        """Returns the acknowledgement type of each offset: `kind` if it was printed, RELEASE if not, and GAP if it has
        no record."""
        return [
            GAP if offset not in self.records else kind if offset in printed else RELEASE
            for offset in range(self.first, self.last + 1)
        ]


class RangeAcknowledgement(NamedTuple):
    """The acknowledgement types of consecutive offsets."""

    first: int
    kinds: list[int]


Acknowledgements = Mapping[SharePlace, list[RangeAcknowledgement]]


class MemberShareSession:
    """A session with one broker."""

    def __init__(self, group: str, member_id: str) -> None:
        self._group = group
        self._member_id = member_id
        self._epoch = NEW_SESSION
        self._partitions: set[SharePlace] = set()

    @property
    def is_open(self) -> bool:
        """True after the broker's first answer."""
        return self._epoch != NEW_SESSION

    def fetch(self, places: Collection[SharePlace], max_records: int | None) -> ShareFetchRequest:
        """Returns a request for at most `max_records` records of `places`. Partitions that are already in the session
        are not named again."""
        added, removed = set(places) - self._partitions, self._partitions - set(places)
        self._partitions = set(places)
        return ShareFetchRequest(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=self._epoch,
            max_wait_ms=MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=MAX_BYTES,
            max_records=min(max_records or MAX_RECORDS, MAX_RECORDS),
            batch_size=min(max_records or MAX_RECORDS, MAX_RECORDS),
            share_acquire_mode=0 if max_records is None else RECORD_LIMIT,
            topics=[
                FetchTopic(
                    topic_id=topic_id,
                    partitions=[FetchPartition(partition_index=index, acknowledgement_batches=[]) for index in indexes],
                )
                for topic_id, indexes in _by_topic(added).items()
            ],
            forgotten_topics_data=[
                ForgottenTopic(topic_id=topic_id, partitions=indexes)
                for topic_id, indexes in _by_topic(removed).items()
            ],
        )

    def acknowledge(self, acknowledgements: Acknowledgements, *, is_last: bool = False) -> ShareAcknowledgeRequest:
        """Returns a request that acknowledges records. The last request closes the session, which releases all other
        records."""
        topics: dict[Uuid, list[share_acknowledge.AcknowledgePartition]] = {}
        for place, ranges in acknowledgements.items():
            batches = [
                share_acknowledge.AcknowledgementBatch(
                    first_offset=acknowledged.first,
                    last_offset=acknowledged.first + len(acknowledged.kinds) - 1,
                    acknowledge_types=acknowledged.kinds,
                )
                for acknowledged in ranges
            ]
            entry = share_acknowledge.AcknowledgePartition(
                partition_index=place.partition, acknowledgement_batches=batches
            )
            topics.setdefault(place.topic_id, []).append(entry)
        return ShareAcknowledgeRequest(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=END_OF_SESSION if is_last else self._epoch,
            topics=[
                share_acknowledge.AcknowledgeTopic(topic_id=topic_id, partitions=entries)
                for topic_id, entries in topics.items()
            ],
        )

    def answered(self) -> None:
        """Advances the epoch, after the broker has answered."""
        self._epoch = 1 if self._epoch == LAST_EPOCH else self._epoch + 1

    def begin_anew(self) -> None:
        """Resets the session: the broker doesn't have it, or may have missed a request."""
        self._epoch = NEW_SESSION
        self._partitions.clear()


def acquired_ranges(partition: PartitionData) -> list[AcquiredRange]:
    """Returns the acquired ranges of a partition. The batches also have records that other members acquired or that are
    done, and markers, which are gaps to a consumer."""
    buffer = partition.records or b""
    records = {
        record.offset: (record, header.timestamp_type)
        for at, header in iter_batches(buffer)
        if not header.is_control
        for record in read_records(buffer, at, header)
    }
    return [_acquired(acquired, records) for acquired in partition.acquired_records]


def _acquired(
    acquired: share_fetch.AcquiredRecords, records: Mapping[int, tuple[Record, TimestampType]]
) -> AcquiredRange:
    inside = {
        offset: record for offset, record in records.items() if acquired.first_offset <= offset <= acquired.last_offset
    }
    return AcquiredRange(acquired.first_offset, acquired.last_offset, acquired.delivery_count, inside)


def _by_topic(places: Iterable[SharePlace]) -> dict[Uuid, list[int]]:
    topics: dict[Uuid, list[int]] = {}
    for topic_id, index in sorted(places):
        topics.setdefault(topic_id, []).append(index)
    return topics
