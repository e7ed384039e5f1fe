"""The asyncio side of `coordinator.quorum.observer`: sends its requests, and applies the steps that it returns to the
log.

It sends one request at a time, from `start` to `stop`. An error of a peer is logged, once for each reason, and followed
by a pause. An error of the log or its records stops the broker, because its metadata would differ from the cluster's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, TypeVar

from broker.clock import next_turn, pause
from broker.logging import get_logger
from broker.metadata.controllers import Controllers
from broker.metadata.followed_log import FollowedLog
from broker.metadata.snapshots import Snapshots
from client.errors import PeerError
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.quorum_state import QuorumState
from coordinator.cluster.snapshot import SnapshotId
from coordinator.quorum.leadership import Location
from coordinator.quorum.observer import (
    Append,
    BeginSnapshot,
    DropSnapshot,
    Observer,
    Refused,
    Step,
    Truncate,
    WritePiece,
)
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.fetch_snapshot import FetchSnapshotResponse
from storage.failure import StorageError

TURN_MS: Final = 10
"""Time for which committed records are applied before the event loop serves others."""

RETRY_MS: Final = 100
"""The pause after a useless response; an election takes at least as long."""

NEVER_MS: Final = -1
"""Earlier than all times."""

T = TypeVar("T")

log = get_logger(__name__)


class Threads(Protocol):
    """Runs work that waits for a disk."""

    async def call(self, work: Callable[[], T]) -> T:
        """Calls `work` off the event loop, and returns its result."""
        ...


class QuorumTimes(NamedTuple):
    """controller.quorum.request.timeout.ms, .fetch.timeout.ms and .retry.backoff.ms."""

    request_ms: int = 2_000
    fetch_ms: int = 2_000
    backoff_ms: int = 20


class Observing:
    """Keeps log and image up to date with the quorum."""

    def __init__(
        self,
        observer: Observer,
        followed: FollowedLog,
        loader: MetadataLoader,
        snapshots: Snapshots,
        controllers: Controllers,
        times: QuorumTimes,
        listener: str,
        threads: Threads,
        on_failure: Callable[[KafkaError], None],
    ) -> None:
        """`listener` is the name of the controllers' listener; `on_failure` is called once, if the quorum can no longer
        be followed.
        """
        self._observer = observer
        self._leadership = observer.leadership
        self._log = followed
        self._loader = loader
        self._snapshots = snapshots
        self._controllers = controllers
        self._clock = controllers.clock
        self._times = times
        self._listener = listener
        self._threads = threads
        self._on_failure = on_failure
        self._high_watermark: int | None = None
        """The highest high watermark that a leader has reported since the start."""
        self._remembered: QuorumState = self._leadership.state
        self._answered_ms = self._clock.monotonic_ms()
        """The time of the leader's last useful response."""
        self._sent_ms = NEVER_MS
        """The time of the last Fetch."""
        self.current_as_of_ms = NEVER_MS
        """The time, by the monotonic clock, at which the leader had committed no more records than the image has."""
        self._problem = ""
        self._task: asyncio.Task[None] | None = None

    @property
    def is_current(self) -> bool:
        """True once the image has all records that the leader had committed at the last Fetch."""
        return self._high_watermark is not None and self._log.high_watermark >= self._high_watermark

    def start(self) -> None:
        """Starts to fetch, in a task."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Ends the task, and returns when it is over."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            while True:
                await pause(self._clock, await self._round())
        except (KafkaError, ProtocolError) as error:
            self._on_failure(error if isinstance(error, KafkaError) else _corrupt(error))
        except Exception as error:  # a bug: the broker would continue with metadata that never change again
            log.error("the metadata log can no longer be followed", exc_info=error)
            self._on_failure(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{type(error).__name__}: {error}"))

    async def _round(self) -> int:
        """Sends one request and applies its response; returns the pause before the next request, in milliseconds."""
        if self._clock.monotonic_ms() - self._answered_ms > self._times.fetch_ms:
            self._leadership.suspect()
        location = self._leadership.destination()
        if location is None:
            return RETRY_MS
        try:
            step = await self._fetch(location)
        except (PeerError, ProtocolError) as error:
            self._leadership.suspect()
            self._log_problem(str(error))
            return max(self._times.backoff_ms, 1)
        await self._remember()
        if isinstance(step, Refused):
            self._log_problem(f"{location}: {step.reason}")
            return max(self._times.backoff_ms, RETRY_MS)
        problem = await self._carry_out(step)
        if problem is not None:
            self._log_problem(f"{location}: {problem}")
            return max(self._times.backoff_ms, RETRY_MS)
        return 0

    async def _fetch(self, location: Location) -> Step:
        """Returns the step that follows from the response of the node at this address."""
        request = self._observer.request(self._log.end, self._high_watermark)
        peer, timeout_ms = self._controllers.peer(location), max(self._times.request_ms, 1)
        if isinstance(request, FetchRequest):
            self._sent_ms = self._clock.monotonic_ms()
            records = await peer.send(request, FetchResponse, timeout_ms=timeout_ms, max_dials=1)
            return self._observer.fetched(records, self._log.high_watermark)
        piece = await peer.send(request, FetchSnapshotResponse, timeout_ms=timeout_ms, max_dials=1)
        return self._observer.snapshot_fetched(piece)

    async def _remember(self) -> None:
        """Stores a new leader or epoch on disk, and logs it."""
        state = self._leadership.state
        if state == self._remembered:
            return
        voters = None if self._loader.image.kraft_version else self._leadership.static_voters
        await self._threads.call(lambda: self._log.remember(state._replace(voters=voters)))
        if state.leader_id >= 0:
            log.info("the quorum has a leader", node=state.leader_id, epoch=state.leader_epoch)
        self._remembered = state

    async def _carry_out(self, step: Step) -> str | None:
        """Applies the step; returns the problem if it can't be applied, otherwise None."""
        if isinstance(step, Append):
            return await self._append(step)
        self._answered_ms = self._clock.monotonic_ms()
        if isinstance(step, Truncate):
            return self._truncate(step)
        if isinstance(step, BeginSnapshot):
            log.info("fetching a snapshot of the metadata", snapshot=step.snapshot_id.file_name)
        elif isinstance(step, DropSnapshot):
            await self._threads.call(lambda: self._log.drop(step.snapshot_id))
        elif isinstance(step, WritePiece):
            return await self._write(step)
        return None

    async def _append(self, step: Append) -> str | None:
        try:
            size_bytes = self._log.extend(step.records, self._leadership.epoch)
        except StorageError:
            raise
        except (KafkaError, ProtocolError) as error:
            return f"its records are rejected: {error}"
        if len(step.records) and not size_bytes:
            return f"{len(step.records)} bytes without a whole batch"
        self._answered_ms = self._clock.monotonic_ms()
        self._problem = ""
        if step.high_watermark >= 0:
            self._high_watermark = max(step.high_watermark, self._high_watermark or 0)
            await self._advance(step.high_watermark)
            if self.is_current:
                self.current_as_of_ms = self._sent_ms
        return None

    async def _advance(self, high_watermark: int) -> None:
        begun_ms = self._clock.monotonic_ms()
        for batch in self._log.advance(high_watermark):
            if batch is not None and batch.quorum and self._loader.voters is not None:
                self._leadership.learn(self._loader.voters, self._listener)
            if self._clock.monotonic_ms() - begun_ms >= TURN_MS:
                await next_turn()
                begun_ms = self._clock.monotonic_ms()

    def _truncate(self, step: Truncate) -> str | None:
        before = self._log.end_offset
        if not self._log.truncate(step.epoch, step.end_offset):
            return (
                f"asks to truncate to offset {step.end_offset} of epoch {step.epoch}, but this log has nothing after it"
            )
        log.info("uncommitted metadata records truncated", records=before - self._log.end_offset)
        return None

    async def _write(self, step: WritePiece) -> str | None:
        await self._threads.call(lambda: self._log.write_part(step.snapshot_id, step.position, step.content))
        return await self._adopt(step.snapshot_id) if step.is_last else None

    async def _adopt(self, snapshot_id: SnapshotId) -> str | None:
        """Replaces log and image by a complete snapshot; returns the problem if the snapshot is damaged."""
        try:
            snapshot, file = await self._threads.call(lambda: self._log.finish_part(snapshot_id))
            self._loader.replace(snapshot_id, snapshot)
        except StorageError:
            raise
        except (KafkaError, ProtocolError) as error:
            await self._threads.call(lambda: self._log.drop(snapshot_id))
            return f"its snapshot {snapshot_id.file_name} cannot be used: {error}"
        self._log.restart_at(snapshot_id)
        self._snapshots.adopted(file)
        if self._loader.voters is not None:
            self._leadership.learn(self._loader.voters, self._listener)
        log.info("started again from a snapshot of the metadata", snapshot=snapshot_id.file_name)
        return None

    def _log_problem(self, problem: str) -> None:
        """Logs a problem once, not at every attempt."""
        self._leadership.problem = problem
        if problem != self._problem:
            self._problem = problem
            log.warning("fetching metadata from the quorum failed", reason=problem)


def _corrupt(error: ProtocolError) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the metadata log cannot be read: {error}")
