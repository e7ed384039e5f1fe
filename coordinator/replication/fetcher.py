"""A fetcher: the partitions that a broker follows on one leader over one fetch session. Sans-IO.

    fetcher.follow(…) · fetcher.unfollow(key)   as the metadata has it
    fetcher.request(now_ms)                     → a Fetch, or None while nothing is to be fetched
    fetcher.fetched(response, now_ms)           → steps: append, cut, report
    fetcher.offsets_request() · offsets_listed  a ListOffsets if the leader lacks an offset
    fetcher.replicated · corrected · delay · fail   how a step ended

An answer is ignored for a partition that is now followed in another leader epoch, or whose log has changed since
the request. Source: Kafka's AbstractFetcherThread and RemoteLeaderEndPoint; KIP-595, KIP-320, KIP-903.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, NamedTuple

from coordinator.replication.session import FollowerSession, PartitionKey
from coordinator.replication.states import FetchState, FollowedPartition, L
from coordinator.replication.steps import Correct, FollowerStep, LeaderError, Replicate
from coordinator.replication.truncation import CutTo, RestartAt, Resume, diverging_offset, out_of_range
from protocol.errors import ErrorCode, error_code
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, PartitionData, ReplicaState
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.types import TopicPartition
from storage.epochs import UNDEFINED_EPOCH, EpochEnd

LATEST: Final = -1
EARLIEST: Final = -2
"""Timestamps by which ListOffsets requests a log's end and its start."""

NOTHING: Final = memoryview(b"")


class FetcherOptions(NamedTuple):
    """The current options replica.fetch.*."""

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 10_485_760
    """replica.fetch.response.max.bytes"""
    partition_max_bytes: int = 1_048_576
    """replica.fetch.max.bytes"""
    backoff_ms: int = 1_000


class FollowerIdentity(NamedTuple):
    """The following broker, in its current registration (KIP-903)."""

    broker_id: int
    broker_epoch: int


def never(_: object) -> bool:
    """Returns False: throttles nothing."""
    return False


class Fetcher(Generic[L]):
    """The partitions of one leader and one fetcher id."""

    def __init__(
        self, options: Callable[[], FetcherOptions], must_wait: Callable[[FollowedPartition[L]], bool] = never
    ) -> None:
        """`must_wait` returns True for a throttled partition; it is called for partitions that are not in sync."""
        self.session = FollowerSession()
        self._options = options
        self._must_wait = must_wait
        self._partitions: dict[PartitionKey, FollowedPartition[L]] = {}
        self._dirty: dict[PartitionKey, None] = {}
        """The partitions that change in the next request; only these are examined."""
        self._delayed: dict[PartitionKey, FollowedPartition[L]] = {}
        self._out_of_range: dict[PartitionKey, FollowedPartition[L]] = {}

    def __len__(self) -> int:
        return len(self._partitions)

    def __contains__(self, partition: FollowedPartition[L]) -> bool:
        return self._partitions.get(partition.key) is partition

    def partitions(self) -> list[FollowedPartition[L]]:
        """Returns the followed partitions."""
        return list(self._partitions.values())

    # Changes by the metadata

    def follow(self, key: PartitionKey, name: TopicPartition, replica: L, leader_epoch: int) -> Correct[L] | None:
        """Starts to fetch a partition, in this leader epoch.

        A log without epochs, as message formats before v2 leave it, can't be compared with the leader's: its
        uncommitted records are removed first.
        """
        partition = self._partitions.get(key)
        if partition is not None and partition.replica is replica and partition.leader_epoch == leader_epoch:
            return None
        self.unfollow(key)
        partition = self._partitions[key] = FollowedPartition(key, name, replica, leader_epoch)
        self._dirty[key] = None
        if replica.last_leader_epoch == UNDEFINED_EPOCH and replica.high_watermark < replica.log_end_offset:
            return self._correct(partition, CutTo(replica.high_watermark))
        return None

    def unfollow(self, key: PartitionKey) -> None:
        """Stops fetching a partition; an answer in flight is ignored for it."""
        if self._partitions.pop(key, None) is not None:
            self._delayed.pop(key, None)
            self._out_of_range.pop(key, None)
            self._dirty[key] = None

    # Requests

    def request(self, now_ms: int, follower: FollowerIdentity) -> FetchRequest | None:
        """Returns the next Fetch; None if no partition can be fetched or must be forgotten."""
        for partition in [delayed for delayed in self._delayed.values() if delayed.ready_ms <= now_ms]:
            self._enter(partition, FetchState.FETCHING)
        options = self._options()
        for key in [*self._dirty]:
            followed = self._partitions.get(key)
            if followed is not None and self._is_held_back(followed):
                self.delay(followed, now_ms)
            if followed is None or followed.state is not FetchState.FETCHING:
                self.session.drop(key)
            else:
                self.session.put(key, _fetch_partition(followed, options.partition_max_bytes))
        self._dirty = {}
        if not self.session.partitions and not self.session.has_dropped:
            return None
        fetch = self.session.request()
        return FetchRequest(
            replica_id=follower.broker_id,
            replica_state=ReplicaState(replica_id=follower.broker_id, replica_epoch=follower.broker_epoch),
            max_wait_ms=options.max_wait_ms,
            min_bytes=options.min_bytes,
            max_bytes=options.max_bytes,
            session_id=fetch.session_id,
            session_epoch=fetch.session_epoch,
            topics=fetch.topics,
            forgotten_topics_data=fetch.forgotten,
        )

    def _is_held_back(self, partition: FollowedPartition[L]) -> bool:
        """True if a throttle leaves the partition out of the next request (KIP-73)."""
        return partition.state is FetchState.FETCHING and not partition.is_in_sync and self._must_wait(partition)

    def next_ready_ms(self) -> int | None:
        """Returns the time when the first delayed partition is fetched again; None if there is none."""
        return min((partition.ready_ms for partition in self._delayed.values()), default=None)

    def unanswered(self, now_ms: int) -> None:
        """Pauses all partitions after a request without an answer."""
        self.session.restart()
        for partition in self._partitions.values():
            if partition.state in (FetchState.FETCHING, FetchState.OUT_OF_RANGE):
                self.delay(partition, now_ms)

    # Answers

    def fetched(self, response: FetchResponse, now_ms: int) -> list[FollowerStep[L]]:
        """Returns the steps after an answer. Raises SessionEnded if it is useless."""
        problem = self.session.accept(response)
        if problem is not None:
            raise SessionEnded(problem)
        steps: list[FollowerStep[L]] = []
        for topic in response.responses:
            for data in topic.partitions:
                step = self._partition_fetched(PartitionKey(topic.topic_id, data.partition_index), data, now_ms)
                if step is not None:
                    steps.append(step)
        return steps

    def _partition_fetched(self, key: PartitionKey, data: PartitionData, now_ms: int) -> FollowerStep[L] | None:
        partition, requested = self._partitions.get(key), self.session.partitions[key]
        if (
            partition is None
            or partition.state is not FetchState.FETCHING
            or requested.current_leader_epoch != partition.leader_epoch
            or requested.fetch_offset != partition.replica.log_end_offset
        ):
            return None
        code = error_code(data.error_code)
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._enter(partition, FetchState.OUT_OF_RANGE)
            return None
        if code is not ErrorCode.NONE:
            return self._failed(partition, code, now_ms)
        diverging = data.diverging_epoch
        if (
            diverging.epoch >= 0
        ):  # its watermarks belong to a log of which this one is not a prefix (KAFKA-13141, 14704)
            if diverging.end_offset < 0:
                return self._failed(partition, ErrorCode.UNKNOWN_SERVER_ERROR, now_ms)
            target = diverging_offset(partition.replica, EpochEnd(diverging.epoch, diverging.end_offset))
            return self._correct(partition, CutTo(target))
        partition.leader_high_watermark = data.high_watermark
        records = NOTHING if data.records is None else memoryview(data.records)
        return Replicate(partition, records, data.high_watermark, data.log_start_offset)

    def _failed(self, partition: FollowedPartition[L], code: ErrorCode, now_ms: int) -> LeaderError[L]:
        """Handles the error of a partition that was requested in the current epoch."""
        if code is ErrorCode.FENCED_LEADER_EPOCH:  # the metadata will have the leader and its epoch
            self.fail(partition)
        else:
            self.delay(partition, now_ms)
        return LeaderError(partition, code)

    # Out of range

    def offsets_request(self, broker_id: int) -> ListOffsetsRequest | None:
        """Returns a request for the ends, and then the starts, of the leader's logs whose partitions are out of range;
        None if there are none."""
        topics: dict[str, ListOffsetsTopic] = {}
        for partition in self._out_of_range.values():
            name = partition.name
            topic = topics.setdefault(name.topic, ListOffsetsTopic(name=name.topic, partitions=[]))
            topic.partitions.append(
                ListOffsetsPartition(
                    partition_index=name.partition,
                    current_leader_epoch=partition.leader_epoch,
                    timestamp=LATEST if partition.leader_end is None else EARLIEST,
                )
            )
        return ListOffsetsRequest(replica_id=broker_id, topics=[*topics.values()]) if topics else None

    def offsets_listed(self, response: ListOffsetsResponse, now_ms: int) -> list[FollowerStep[L]]:
        """Returns the steps after the leader's offsets."""
        answers = {
            TopicPartition(topic.name, answer.partition_index): answer
            for topic in response.topics
            for answer in topic.partitions
        }
        steps: list[FollowerStep[L]] = []
        for partition in [*self._out_of_range.values()]:
            answer = answers.get(partition.name)
            if answer is None:
                self.delay(partition, now_ms)
                continue
            step = self._offset_listed(partition, answer, now_ms)
            if step is not None:
                steps.append(step)
        return steps

    def _offset_listed(
        self, partition: FollowedPartition[L], answer: ListOffsetsPartitionResponse, now_ms: int
    ) -> FollowerStep[L] | None:
        code = error_code(answer.error_code)
        if code is ErrorCode.NONE and answer.offset < 0:
            code = ErrorCode.UNKNOWN_SERVER_ERROR  # every log has a start and an end
        if code is not ErrorCode.NONE:
            return self._failed(partition, code, now_ms)
        if partition.leader_end is None:
            leader_end, leader_start = answer.offset, None
        else:
            leader_end, leader_start = partition.leader_end, answer.offset
        correction = out_of_range(partition.replica, leader_start, leader_end)
        if correction is None:
            partition.leader_end = leader_end
            return None
        if isinstance(correction, Resume):
            self._enter(partition, FetchState.FETCHING)
            return None
        return self._correct(partition, correction)

    # Ends of steps

    def replicated(self, partition: FollowedPartition[L]) -> None:
        """Includes the partition in the next request, because its batches are in the log and its watermarks are
        updated."""
        self._dirty[partition.key] = None

    def busy(self, partition: FollowedPartition[L]) -> None:
        """Pauses a partition while a thread works on its log, until `corrected`."""
        self._enter(partition, FetchState.CORRECTING)

    def corrected(self, partition: FollowedPartition[L]) -> None:
        """Fetches the partition again after the thread has corrected its log."""
        self._enter(partition, FetchState.FETCHING)

    def delay(self, partition: FollowedPartition[L], now_ms: int) -> None:
        """Tries again after a pause."""
        partition.ready_ms = now_ms + self._options().backoff_ms
        self._enter(partition, FetchState.DELAYED)

    def fail(self, partition: FollowedPartition[L]) -> None:
        """Stops fetching a partition in this leader epoch."""
        self._enter(partition, FetchState.FAILED)

    def _correct(self, partition: FollowedPartition[L], correction: CutTo | RestartAt) -> Correct[L]:
        self._enter(partition, FetchState.CORRECTING)
        return Correct(partition, correction)

    def _enter(self, partition: FollowedPartition[L], state: FetchState) -> None:
        """Changes the state of a partition that is still followed in this epoch."""
        if partition not in self:
            return
        partition.enter(state)
        key = partition.key
        self._dirty[key] = None
        for state_of, partitions in (
            (FetchState.DELAYED, self._delayed),
            (FetchState.OUT_OF_RANGE, self._out_of_range),
        ):
            if state is state_of:
                partitions[key] = partition
            else:
                partitions.pop(key, None)


class SessionEnded(Exception):
    """The answer doesn't match the session's request; the next request begins a new session."""


def _fetch_partition(partition: FollowedPartition[L], max_bytes: int) -> FetchPartition:
    replica = partition.replica
    return FetchPartition(
        partition=partition.key.partition,
        current_leader_epoch=partition.leader_epoch,
        fetch_offset=replica.log_end_offset,
        last_fetched_epoch=replica.last_leader_epoch,
        log_start_offset=replica.log_start_offset,
        partition_max_bytes=max_bytes,
    )
