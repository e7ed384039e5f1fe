"""The shell of `coordinator.quorum.observer`: sends what it asks, and carries out on the log what the answer means.

One request at a time, from the start until `stop`. What is wrong with a peer is told once for each reason, and met with
a pause; what is wrong with the log or its records ends the broker, which would serve another cluster than it believes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, TypeVar

from broker.logging import get_logger
from broker.metadata.controllers import Controllers
from broker.metadata.followed_log import FollowedLog
from broker.metadata.snapshots import Snapshots
from broker.peers.waiting import pause
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
from protocol.peer_errors import PeerError
from storage.failure import StorageError

TURN_MS: Final = 10
"""How long committed records are taken in before others have their turn on the event loop."""

REFUSED_MS: Final = 100
"""Before the next try where an answer was of no use: an election takes as long at least."""

T = TypeVar("T")

log = get_logger("broker.metadata")


class Threads(Protocol):
    """Where work runs that waits for a disk."""

    async def call(self, work: Callable[[], T]) -> T:
        """Does the work off the event loop, and gives its result."""
        ...


class Times(NamedTuple):
    """controller.quorum.*.ms"""

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
        times: Times,
        listener: str,
        threads: Threads,
        on_failure: Callable[[KafkaError], None],
    ) -> None:
        """`listener` is the controllers' name for where they are spoken to; `on_failure` is told once that nothing of
        the quorum's can be taken in any more."""
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
        """As a leader has told it since the start."""
        self._remembered: QuorumState = self._leadership.state
        self._answered_ms = self._clock.monotonic_ms()
        """When the leader last gave an answer of use."""
        self._reason = ""
        self._task: asyncio.Task[None] | None = None

    @property
    def is_current(self) -> bool:
        """True once all is in the image that the leader had committed when it was last asked."""
        return self._high_watermark is not None and self._log.high_watermark >= self._high_watermark

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Ask no more; returns when nothing of the log is at work."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            while True:
                await pause(self._clock, await self._round())
        except (KafkaError, ProtocolError) as error:
            self._on_failure(error if isinstance(error, KafkaError) else _corrupt(error))
        except Exception as error:  # a fault of ours: who went on would serve metadata that never change again
            log.error("the metadata cannot be followed any longer", exc_info=error)
            self._on_failure(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{type(error).__name__}: {error}"))

    async def _round(self) -> int:
        """One request and what comes of it; the pause before the next, in milliseconds."""
        if self._clock.monotonic_ms() - self._answered_ms > self._times.fetch_ms:
            self._leadership.suspect()
        location = self._leadership.destination()
        if location is None:
            return REFUSED_MS
        try:
            step = await self._ask(location)
        except (PeerError, ProtocolError) as error:
            self._leadership.suspect()
            self._tell(str(error))
            return max(self._times.backoff_ms, 1)
        await self._remember()
        if isinstance(step, Refused):
            self._tell(f"{location}: {step.reason}")
            return max(self._times.backoff_ms, REFUSED_MS)
        problem = await self._carry_out(step)
        if problem is not None:
            self._tell(f"{location}: {problem}")
            return max(self._times.backoff_ms, REFUSED_MS)
        return 0

    async def _ask(self, location: Location) -> Step:
        request = self._observer.request(self._log.end, self._high_watermark)
        peer, timeout_ms = self._controllers.peer(location), max(self._times.request_ms, 1)
        if isinstance(request, FetchRequest):
            fetched = await peer.send(request, FetchResponse, timeout_ms=timeout_ms, max_dials=1)
            return self._observer.fetched(fetched, self._log.high_watermark)
        piece = await peer.send(request, FetchSnapshotResponse, timeout_ms=timeout_ms, max_dials=1)
        return self._observer.snapshot_fetched(piece)

    async def _remember(self) -> None:
        """Who leads, on disk and in the log of the broker, as soon as that is news."""
        state = self._leadership.state
        if state == self._remembered:
            return
        await self._threads.call(lambda: self._log.remember(state))
        if state.leader_id >= 0:
            log.info("the quorum has a leader", node=state.leader_id, epoch=state.leader_epoch)
        self._remembered = state

    async def _carry_out(self, step: Step) -> str | None:
        """What was wrong with the step, if something was."""
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
            return f"its records are refused: {error}"
        if len(step.records) and not size_bytes:
            return f"{len(step.records)} bytes without a whole batch"
        self._answered_ms = self._clock.monotonic_ms()
        self._reason = ""
        if step.high_watermark >= 0:
            self._high_watermark = max(step.high_watermark, self._high_watermark or 0)
            await self._advance(step.high_watermark)
        return None

    async def _advance(self, high_watermark: int) -> None:
        begun_ms = self._clock.monotonic_ms()
        for batch in self._log.advance(high_watermark):
            if batch.quorum and self._loader.voters is not None:
                self._leadership.learn(self._loader.voters, self._listener)
            if self._clock.monotonic_ms() - begun_ms >= TURN_MS:
                await asyncio.sleep(0)
                begun_ms = self._clock.monotonic_ms()

    def _truncate(self, step: Truncate) -> str | None:
        before = self._log.end_offset
        if not self._log.truncate(step.epoch, step.end_offset):
            return f"asks to truncate behind offset {step.end_offset} of epoch {step.epoch}, and there is nothing"
        log.info("metadata that the quorum did not commit was dropped", records=before - self._log.end_offset)
        return None

    async def _write(self, step: WritePiece) -> str | None:
        await self._threads.call(lambda: self._log.write_part(step.snapshot_id, step.position, step.content))
        return await self._adopt(step.snapshot_id) if step.is_last else None

    async def _adopt(self, snapshot_id: SnapshotId) -> str | None:
        """A snapshot is whole: log and image begin there."""
        try:
            snapshot, file = await self._threads.call(lambda: self._log.finish_part(snapshot_id))
            self._loader.replace(snapshot_id, snapshot)
        except StorageError:
            raise
        except (KafkaError, ProtocolError) as error:
            await self._threads.call(lambda: self._log.drop(snapshot_id))
            return f"its snapshot {snapshot_id.file_name} is of no use: {error}"
        self._log.restart_at(snapshot_id)
        self._snapshots.adopted(file)
        if self._loader.voters is not None:
            self._leadership.learn(self._loader.voters, self._listener)
        log.info("began anew with a snapshot of the metadata", snapshot=snapshot_id.file_name)
        return None

    def _tell(self, reason: str) -> None:
        """Once for each reason in a row, not at every try."""
        self._leadership.problem = reason
        if reason != self._reason:
            self._reason = reason
            log.warning("the quorum gave no metadata", reason=reason)


def _corrupt(error: ProtocolError) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the metadata log cannot be read: {error}")
