"""A fetcher: a task that fetches from one leader, over its own connection, and applies the answers.

Appends run on the event loop, as for Produce, a few milliseconds in each turn. Work that waits for a disk runs in a
thread; meanwhile its partition isn't fetched, but all others are.

Source: Kafka's ReplicaFetcherThread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Final, NamedTuple

from broker.clock import done_by, next_turn
from broker.logging import get_logger
from broker.replica.fetcher_environment import LeaderConnection, ReplicationEnvironment
from broker.replica.following import BeginsInBatch, append_as_follower, take_watermarks
from broker.replica.partition import Partition
from client.errors import PeerError, PeerUnavailable
from coordinator.cluster.brokers.info import BrokerRegistration
from coordinator.replication.fetcher import Fetcher, FetcherOptions, SessionEnded
from coordinator.replication.session import PartitionKey
from coordinator.replication.states import FollowedPartition
from coordinator.replication.steps import Correct, FollowerStep, Replicate
from coordinator.replication.truncation import RestartAt
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.messages.fetch import FetchResponse
from protocol.messages.list_offsets import ListOffsetsResponse
from storage.failure import LogDirFull

TURN_MS: Final = 4
"""Time for which batches are appended before the event loop serves others."""

TRANSIENT: Final = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD, ErrorCode.FENCED_LEADER_EPOCH})
"""Errors of an append that may not occur with the next answer: the answer was damaged, or the role was changing."""

SOON_OVER: Final = frozenset({
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
})  # fmt: skip
"""Errors that a leader returns for a moment, if it gets a new topic, or its role, later than its followers."""

REFUSED_MS: Final = 10_000
"""Time for which replicas get the errors of SOON_OVER before they are logged: ten attempts with the default backoff."""

logger = get_logger(__name__)


class _Problem(NamedTuple):
    """The problem of a partition that doesn't replicate, and the time when it began."""

    since_ms: int
    logged: str
    """The last reason that was logged; empty if none was."""


class ReplicaFetcher:
    """Fetches the partitions of one leader that have the same fetcher id."""

    def __init__(self, leader_id: int, fetcher_id: int, environment: ReplicationEnvironment) -> None:
        self.leader_id = leader_id
        self.fetcher_id = fetcher_id
        self._client_id = f"broker-{environment.node.node_id}-fetcher-{fetcher_id}"
        self._environment = environment
        self._clock = environment.clock
        self._config = environment.config.effective
        self._options = environment.options()
        """The options of `_config`, which is replaced when they change."""
        self._fetcher: Fetcher[Partition] = Fetcher(self._current_options, environment.must_wait)
        self._peer: LeaderConnection | None = None
        self._registration: BrokerRegistration | None = None
        """The leader's registration, from which `_peer` was made."""
        self._problem = ""
        self._problems: dict[PartitionKey, _Problem] = {}
        """The problem of each failing partition. It is logged once, not at every attempt."""
        self._ended_sessions = 0
        """Consecutive answers that ended the session."""
        self._changed = asyncio.get_running_loop().create_future()
        """A future that is done when there may be more to fetch."""
        self._task: asyncio.Task[None] | None = None
        self._at_disk: set[asyncio.Task[None]] = set()

    @property
    def is_idle(self) -> bool:
        """True if it follows no partition."""
        return not len(self._fetcher)

    def followed(self) -> list[FollowedPartition[Partition]]:
        """Returns the partitions that it follows."""
        return self._fetcher.partitions()

    def start(self) -> None:
        """Begins to fetch."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Stops fetching at once. Work that a thread has begun is completed."""
        if self._task is not None:
            self._task.cancel()
        if self._peer is not None:
            self._peer.abort()

    def follow(self, partition: Partition) -> None:
        """Starts to fetch a partition, in the epoch of its role."""
        correction = self._fetcher.follow(key_of(partition), partition.name, partition, partition.role.epoch)
        if correction is not None:
            self._at_a_disk(correction.partition, self._correct(correction))
        self._wake()

    def unfollow(self, key: PartitionKey) -> None:
        """Stops fetching a partition."""
        self._fetcher.unfollow(key)
        self._problems.pop(key, None)

    def _wake(self) -> None:
        if not self._changed.done():
            self._changed.set_result(None)

    async def _run(self) -> None:
        while True:
            try:
                await self._round()
            except Exception as error:  # a bug: the other fetchers continue, and so does this one after a pause
                logger.error("a replica fetcher failed", leader=self.leader_id, exc_info=error)
                self._fetcher.unanswered(self._clock.monotonic_ms())

    async def _round(self) -> None:
        """Sends one request and applies its answer, or waits until there is something to request."""
        environment = self._environment
        self._changed = asyncio.get_running_loop().create_future()
        request = self._fetcher.request(self._clock.monotonic_ms(), environment.identity)
        if request is None:
            await self._until_due()
            return
        try:
            peer = self._leader()
            response = await peer.send(request, FetchResponse, timeout_ms=environment.timeout_ms, max_dials=1)
            steps = self._fetcher.fetched(response, self._clock.monotonic_ms())
            self._ended_sessions, self._problem = 0, ""
            await self._carry_out(steps)
            await self._ask_for_offsets(peer)
        except SessionEnded as ended:
            self._session_ended(str(ended))
        except (PeerError, ProtocolError) as error:
            self._tell(str(error))
            self._fetcher.unanswered(self._clock.monotonic_ms())

    async def _until_due(self) -> None:
        ready_ms = self._fetcher.next_ready_ms()
        if ready_ms is None:
            await self._changed
        else:
            await done_by(self._clock, ready_ms, self._changed)

    def _current_options(self) -> FetcherOptions:
        config = self._environment.config.effective
        if config is not self._config:
            self._config, self._options = config, self._environment.options()
        return self._options

    def _leader(self) -> LeaderConnection:
        """Returns the connection to the leader at its current address. Raises PeerUnavailable."""
        registration, peer = self._environment.image.brokers.get(self.leader_id), self._peer
        if peer is not None and registration is not None and registration is self._registration:
            return peer
        address = self._environment.address(self.leader_id)
        if address is None:
            raise PeerUnavailable(f"broker {self.leader_id}", "has no address")
        if peer is None or peer.address != address:
            if peer is not None:
                peer.abort()
            peer = self._peer = self._environment.connect(address, self._client_id)
        self._registration = registration
        return peer

    def _session_ended(self, reason: str) -> None:
        """Requests a new session at once after the leader has dropped the session; after a second time in a row, pauses
        first.
        """
        self._ended_sessions += 1
        if self._ended_sessions > 1:
            self._tell(reason)
            self._fetcher.unanswered(self._clock.monotonic_ms())

    async def _ask_for_offsets(self, peer: LeaderConnection) -> None:
        """Requests the leader's end and start offsets until the correction of every out-of-range partition is
        decided."""
        environment = self._environment
        while (request := self._fetcher.offsets_request(environment.node.node_id)) is not None:
            response = await peer.send(request, ListOffsetsResponse, timeout_ms=environment.timeout_ms, max_dials=1)
            await self._carry_out(self._fetcher.offsets_listed(response, self._clock.monotonic_ms()))

    # Steps

    async def _carry_out(self, steps: list[FollowerStep[Partition]]) -> None:
        begun_ms = self._clock.monotonic_ms()
        refused: dict[str, list[FollowedPartition[Partition]]] = {}
        for step in steps:
            if step.partition not in self._fetcher:
                continue  # no longer followed, or in another epoch, since the event loop served others
            if isinstance(step, Replicate):
                self._replicate(step)
            elif isinstance(step, Correct):
                self._at_a_disk(step.partition, self._correct(step))
            elif self._is_news(step.partition, step.code.name, REFUSED_MS if step.code in SOON_OVER else 0):
                refused.setdefault(step.code.name, []).append(step.partition)
            if self._clock.monotonic_ms() - begun_ms >= TURN_MS:
                await next_turn()
                begun_ms = self._clock.monotonic_ms()
        for reason, partitions in refused.items():
            self._tell_refused(reason, partitions)

    def _replicate(self, step: Replicate[Partition]) -> None:
        followed = step.partition
        partition = followed.replica
        try:
            self._append(step)
        except BeginsInBatch as begins:
            self._fetcher.busy(followed)
            self._at_a_disk(followed, self._begin_in_batch(step, begins.base_offset))
        except (KafkaError, ProtocolError) as error:
            self._append_failed(followed, error)
        except Exception as fault:  # a bug in one partition must not stop all others
            logger.error("replication failed", partition=str(followed.name), exc_info=fault)
            self._fetcher.fail(followed)
        else:
            self._fetcher.replicated(followed)
            if self._problems:
                self._problems.pop(followed.key, None)
            if partition.must_flush:  # the next fetch acknowledges the records
                self._fetcher.busy(followed)
                self._at_a_disk(followed, partition.flushed(self._environment.disk_work))

    def _append(self, step: Replicate[Partition]) -> None:
        partition = step.partition.replica
        if len(step.records):
            epoch, now_ms = step.partition.leader_epoch, self._clock.now_ms()
            offsets = append_as_follower(partition, step.records, epoch, step.log_start_offset, now_ms)
            self._environment.note_throttled(partition, len(step.records))
            if not offsets:
                message = f"{len(step.records)} bytes without a whole batch of the leader's epoch"
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
        take_watermarks(partition, step.high_watermark, step.log_start_offset)

    def _append_failed(self, followed: FollowedPartition[Partition], error: KafkaError | ProtocolError) -> None:
        self._report(followed, "batches of the leader were not appended", str(error))
        if isinstance(error, ProtocolError | LogDirFull) or error.code in TRANSIENT:
            self._fetcher.delay(followed, self._clock.monotonic_ms())
        else:
            self._fetcher.fail(followed)

    def _tell_refused(self, reason: str, partitions: list[FollowedPartition[Partition]]) -> None:
        """Logs one line for all replicas that have the same error in an answer."""
        first, count = str(partitions[0].name), len(partitions)
        event = "the leader does not serve replicas"
        logger.warning(event, leader=self.leader_id, reason=reason, partitions=count, partition=first)

    def _report(self, followed: FollowedPartition[Partition], event: str, reason: str) -> None:
        if self._is_news(followed, reason):
            name, epoch = str(followed.name), followed.leader_epoch
            logger.warning(event, partition=name, leader=self.leader_id, epoch=epoch, reason=reason)

    def _is_news(self, followed: FollowedPartition[Partition], reason: str, after_ms: int = 0) -> bool:
        """True if the replica has had problems for `after_ms`, and this reason isn't the last that was logged."""
        now_ms = self._clock.monotonic_ms()
        before = self._problems.get(followed.key, _Problem(now_ms, ""))
        is_news = before.logged != reason and now_ms - before.since_ms >= after_ms
        self._problems[followed.key] = before._replace(logged=reason) if is_news else before
        return is_news

    # Work in a thread

    def _at_a_disk(self, followed: FollowedPartition[Partition], work: Coroutine[None, None, None]) -> None:
        """Runs `work` in a thread. Then fetches the partition again, or stops following it if `work` fails."""
        task = asyncio.get_running_loop().create_task(self._until_done(followed, work))
        self._at_disk.add(task)
        task.add_done_callback(self._at_disk.discard)

    async def _until_done(self, followed: FollowedPartition[Partition], work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except (KafkaError, ProtocolError) as error:
            logger.warning(
                "a replica no longer fetches from its leader", partition=str(followed.name), reason=str(error)
            )
            self._fetcher.fail(followed)
        except Exception as fault:  # a bug in one partition must not stop all others
            logger.error("replication failed", partition=str(followed.name), exc_info=fault)
            self._fetcher.fail(followed)
        else:
            self._fetcher.corrected(followed)
            self._wake()

    async def _correct(self, step: Correct[Partition]) -> None:
        """Truncates a log to the offset where it diverges from the leader's."""
        followed, offset = step.partition, step.correction.offset
        partition = followed.replica
        end, high_watermark = partition.log_end_offset, partition.high_watermark
        is_new = isinstance(step.correction, RestartAt)
        describe = logger.warning if is_new or offset < high_watermark else logger.info
        describe(
            "log restarted at the leader's start" if is_new else "log cut to a prefix of the leader's",
            partition=str(followed.name),
            offset=offset,
            end=end,
            high_watermark=high_watermark,
            epoch=followed.leader_epoch,
        )
        await partition.truncate(offset, followed.leader_epoch, self._environment.disk_work, fully=is_new)

    async def _begin_in_batch(self, step: Replicate[Partition], base_offset: int) -> None:
        """Empties the log, and starts it at the base offset of the batch that the leader's log starts inside."""
        followed = step.partition
        disk_work, epoch = self._environment.disk_work, followed.leader_epoch
        await followed.replica.truncate(base_offset, epoch, disk_work, fully=True)
        self._append(step)

    def _tell(self, reason: str) -> None:
        """Logs a reason, unless it is the same as the last."""
        if reason != self._problem:
            self._problem = reason
            logger.warning("fetching from a leader failed", leader=self.leader_id, reason=reason)


def key_of(partition: Partition) -> PartitionKey:
    """Returns the partition's key in fetches."""
    return PartitionKey(partition.topic_id, partition.name.partition)
