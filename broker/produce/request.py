"""A parsed Produce request, in which each partition also gets its answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker.produce.rules import NO_OFFSET, RecordsRejected, client_message, log_start_offset, record_errors
from broker.produce.verification import Verified
from broker.replica.partition import Partition
from broker.replica.replicas import Replicas
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import BatchIndexAndErrorMessage
from protocol.primitives import AS_JAVA
from storage.appending.appended import Appended

FIRST_TOPIC_ID_VERSION: Final = 13
ALL: Final = -1
"""acks=all: all in-sync replicas."""

NO_RECORDS: Final = memoryview(b"")
NO_ERROR: Final = 0
"""The code of ErrorCode.NONE, as a constant, because each use of an enum's member costs a look-up in Python 3.11."""
NO_RECORD_ERRORS: Final[Sequence[BatchIndexAndErrorMessage]] = ()


class ProducedTopic:
    """A topic of a request: its key is its id since version 13, and before its name as flexible versions encode it."""

    __slots__ = ("_name", "end", "first", "is_unknown", "key", "uses_id")

    def __init__(self, key: bytes, uses_id: bool, first: int, name: str | None = None) -> None:
        self.first = self.end = first
        """The positions of its first partition in the request, and of the first after it."""
        self.key = key
        self.uses_id = uses_id
        self._name = name
        self.is_unknown = False
        """True if the id named no topic when it was looked up. It stays unknown for the request: a topic that is
        created while the request waits was not authorized."""

    def name(self, replicas: Replicas) -> str | None:
        """Returns the topic's name; None if no topic has the id."""
        if self._name is None and not self.is_unknown:
            self._name = replicas.name_of(self.key) if self.uses_id else str(self.key[1:], "utf-8", AS_JAVA)
            self.is_unknown = self._name is None
        return self._name


class ProducedPartition:
    """The records for one partition, and their answer."""

    __slots__ = (
        "base_offset", "end_offset", "error_code", "error_message", "index", "is_corrupt", "is_transactional",
        "log_append_time_ms", "log_start_offset", "partition", "record_errors", "records", "rejection", "tenure",
        "topic",
    )  # fmt: skip

    def __init__(self, topic: ProducedTopic, index: int, records: memoryview, is_transactional: bool) -> None:
        self.topic = topic
        self.index = index
        self.records = records
        """The records to append; empty once they are appended, because the next request overwrites their buffer."""
        self.is_transactional = is_transactional
        """True for a batch that is part of a transaction."""
        self.rejection: RecordsRejected | None = None
        """The error of records that a request of this version may not carry."""
        self.is_corrupt = False
        """True if that error comes before the look-up of the partition."""
        self.partition: Partition | None = None
        """The partition that the records were appended to."""
        self.end_offset = NO_OFFSET
        """The offset after the last record, while its commit is awaited."""
        self.tenure = 0
        """The value of `Partition.tenure` at the append."""
        self.error_code: int = 0
        self.error_message: str | None = None
        self.record_errors = NO_RECORD_ERRORS
        self.base_offset: int = NO_OFFSET
        self.log_append_time_ms: int = NO_OFFSET
        self.log_start_offset: int = NO_OFFSET

    def replica(self, replicas: Replicas) -> Partition | None:
        """Returns this broker's replica of the partition; None if it has none, or the topic's id is unknown."""
        of_topic = None if self.topic.is_unknown else replicas.by_key.get(self.topic.key)
        return None if of_topic is None else of_topic.get(self.index)

    def fail(self, error: KafkaError, partition: Partition | None = None) -> None:
        """Sets the answer to the error; `partition` is the partition whose log rejected the records."""
        errors = record_errors(error, partition)
        self.error_code = error.code
        self.base_offset = NO_OFFSET
        self.error_message = client_message(error, errors)
        self.record_errors = errors
        self.log_start_offset = log_start_offset(error, partition)
        self.records = NO_RECORDS

    def deny(self) -> None:
        """Sets the answer to TOPIC_AUTHORIZATION_FAILED."""
        self.fail(KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))

    def appended(self, partition: Partition, appended: Appended) -> None:
        """Sets the answer to the offsets of the append."""
        self.partition = partition
        self.base_offset = appended.base_offset
        self.log_append_time_ms = appended.log_append_time_ms
        self.log_start_offset = appended.log_start_offset
        self.records = NO_RECORDS


class ParsedProduce:
    """A Produce request, parsed."""

    __slots__ = (
        "acks", "is_transactional", "partitions", "timeout_ms", "topics", "transactional_id", "verified", "version",
    )  # fmt: skip

    def __init__(
        self,
        version: int,
        transactional_id: str | None,
        acks: int,
        timeout_ms: int,
        topics: list[ProducedTopic],
        partitions: list[ProducedPartition],
    ) -> None:
        self.version = version
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topics = topics
        """The topics that have partitions, in the order of their answers."""
        self.partitions = partitions
        self.is_transactional = any(partition.is_transactional for partition in partitions)
        """True if at least one batch is part of a transaction."""
        self.verified: Verified | None = None
        """The coordinator's verification of the transactional batches; None if the request has none."""

    def partitions_of(self, topic: ProducedTopic) -> list[ProducedPartition]:
        """Returns the topic's partitions. A topic has no list of them, which would be a cycle."""
        return self.partitions[topic.first : topic.end]

    @property
    def first_error(self) -> int:
        """The code of the first partition that failed; 0 if none did."""
        for partition in self.partitions:
            if partition.error_code:
                return partition.error_code
        return NO_ERROR

    def put_last(self, denied: list[ProducedTopic]) -> None:
        """Answers these topics, which were denied, after all others."""
        if denied:
            keys = {id(topic) for topic in denied}
            self.topics = [topic for topic in self.topics if id(topic) not in keys] + denied

    def hold_records(self) -> None:
        """Copies the records out of the listener's buffer, which the next read of the socket overwrites."""
        for partition in self.partitions:
            if len(partition.records):
                partition.records = memoryview(bytearray(partition.records))
