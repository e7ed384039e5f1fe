"""Counts the traffic of clients and other brokers by topic, in plain integers that a metrics scrape reads.

Source: org.apache.kafka.storage.log.metrics.BrokerTopicMetrics.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from protocol.errors import ErrorCode

EXPECTED_APPEND_ERRORS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors that don't count as failed appends, as in Kafka: errors of clients, and changes of leaders
(ReplicaManager).
"""

EXPECTED_READ_ERRORS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_OUT_OF_RANGE,
    }
)
"""Errors that don't count as failed reads, as in Kafka."""


class TopicTraffic:
    """The counts of one topic, shared by its partitions. They only grow."""

    __slots__ = (
        "appends",
        "bytes_in",
        "bytes_out",
        "failed_appends",
        "failed_reads",
        "fetch_conversions",
        "messages_in",
        "produce_conversions",
        "reads",
        "replication_bytes_in",
        "replication_bytes_out",
    )

    def __init__(self) -> None:
        self.appends = 0
        """Attempted appends to a partition, as in Kafka's TotalProduceRequestsPerSec."""
        self.failed_appends = 0
        self.messages_in = 0
        self.bytes_in = 0
        self.produce_conversions = 0
        """Records that producers sent in an older message format."""
        self.reads = 0
        """Reads of a partition, as in Kafka's TotalFetchRequestsPerSec; each retry of a waiting fetch counts."""
        self.failed_reads = 0
        self.bytes_out = 0
        self.fetch_conversions = 0
        """Records that were sent to consumers in an older message format."""
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0

    def add(self, other: TopicTraffic) -> None:
        """Adds the counts of another topic."""
        self.appends += other.appends
        self.failed_appends += other.failed_appends
        self.messages_in += other.messages_in
        self.bytes_in += other.bytes_in
        self.produce_conversions += other.produce_conversions
        self.reads += other.reads
        self.failed_reads += other.failed_reads
        self.bytes_out += other.bytes_out
        self.fetch_conversions += other.fetch_conversions
        self.replication_bytes_in += other.replication_bytes_in
        self.replication_bytes_out += other.replication_bytes_out

    def appended(self, base_offset: int, last_offset: int, size_bytes: int) -> None:
        """Counts an append of these offsets, including a duplicate's."""
        self.appends += 1
        self.messages_in += last_offset - base_offset + 1
        self.bytes_in += size_bytes

    def append_failed(self, code: ErrorCode) -> None:
        """Counts an append that failed."""
        self.appends += 1
        if code not in EXPECTED_APPEND_ERRORS:
            self.failed_appends += 1


class Traffic:
    """The counts of all topics. The counts of removed topics stay in the total, which must never go down."""

    def __init__(self) -> None:
        self._topics: dict[str, TopicTraffic] = {}
        self._gone = TopicTraffic()

    def topic(self, name: str) -> TopicTraffic:
        """Returns the counts of a topic, which the first call creates."""
        counts = self._topics.get(name)
        if counts is None:
            counts = self._topics[name] = TopicTraffic()
        return counts

    def forget(self, name: str) -> None:
        """Removes a topic that no longer has a partition here."""
        counts = self._topics.pop(name, None)
        if counts is not None:
            self._gone.add(counts)

    def read_failed(self, name: str, code: ErrorCode) -> None:
        """Counts a failed read of a partition of the topic."""
        if code not in EXPECTED_READ_ERRORS:
            self.topic(name).failed_reads += 1

    def topics(self) -> Iterator[tuple[str, TopicTraffic]]:
        """Yields the topics with partitions here, by name."""
        return iter(self._topics.items())

    def total(self) -> TopicTraffic:
        """Returns the sums since the start."""
        total = TopicTraffic()
        total.add(self._gone)
        for counts in self._topics.values():
            total.add(counts)
        return total
