"""The asyncio side of `coordinator.quorum.raft`: gives it requests, answers and the time, and carries out each `Ready`.

One input at a time: the next waits until the `Ready` of the input before is carried out, of which a thread may do a
part. What goes to other nodes follows the durable write of `quorum-state`, so that no vote is given twice.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Final, NamedTuple

from broker.clock import Clock, Timer, pause
from broker.logging import get_logger
from broker.metadata.controllers import Controllers
from broker.metadata.observing import Threads
from broker.metadata.opening import QuorumView
from broker.metadata.quorum_node import DescribedQuorum
from broker.metadata.replicated_log import ReplicatedLog
from broker.metadata.snapshots import Snapshots
from client.errors import PeerError, RequestTimedOut, UnsupportedVersion
from client.settings import SOFTWARE_NAME, SOFTWARE_VERSION
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.quorum_state import NOBODY
from coordinator.quorum.leading import fill_piece
from coordinator.quorum.membership import VoterRejection
from coordinator.quorum.observer import BeginSnapshot, DropSnapshot, WritePiece
from coordinator.quorum.pieces import PieceWish
from coordinator.quorum.raft import Raft
from coordinator.quorum.ready import (
    AdoptSnapshot,
    AppendBatches,
    Flush,
    LeaderAndRole,
    RaftReply,
    ReadRecords,
    Ready,
    Request,
    Send,
    TruncateTo,
    Write,
)
from coordinator.quorum.replicas import ReplicaProgress
from coordinator.quorum.roles import Role
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.messages import messages_of
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from protocol.schema import identity
from storage.failure import LogDirFull, StorageError

STOP_MS: Final = 5_000
"""Longest time that a stopping leader waits for the election of another (KafkaRaftManager's shutdown timeout)."""

STOP_POLL_MS: Final = 10

FULL_POLL_MS: Final = 1_000
"""Pause before `quorum-state` or the log's epochs are written again to a disk that was full."""

NOT_LED: Final = KafkaError(ErrorCode.NOT_CONTROLLER, "another node leads the quorum")

FULL: Final = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk of the metadata log is full")

STOPPED: Final = KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "this node no longer takes part in the quorum")

logger = get_logger(__name__)


class Channels(NamedTuple):
    """The connections to other voters. A connection answers in order, so fetches, which wait, have their own."""

    fetches: Controllers
    others: Controllers

    async def close(self) -> None:
        """Closes all connections."""
        await asyncio.gather(*(controllers.close() for controllers in self))


class RaftReplica:
    """This node as a replica of the metadata log."""

    def __init__(
        self,
        raft: Raft,
        log: ReplicatedLog,
        loader: MetadataLoader,
        snapshots: Snapshots,
        channels: Channels,
        clock: Clock,
        threads: Threads,
    ) -> None:
        self.raft = raft
        self.on_leader: Callable[[LeaderAndRole], None] = lambda _: None
        """Called with each new leader, epoch or role."""
        self._log = log
        self._loader = loader
        self._snapshots = snapshots
        self._channels = channels
        self._clock = clock
        self._threads = threads
        self._inputs: deque[Callable[[], None]] = deque()
        self._slow: asyncio.Task[None] | None = None
        """The task that carries out a `Ready` with the help of a thread; None if there is none."""
        self._tickets = count()
        self._waiting: dict[int, asyncio.Future[RaftReply]] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._flushing = False
        self._flush: Flush | None = None
        """The token of the flush that follows the flush in progress."""
        self._timer: Timer | None = None
        self._is_stopped = False
        self._is_draining = False
        self._problems: dict[object, str] = {}
        """The last problem with each other node, and with the quorum."""

    # Inputs.

    def start(self) -> None:
        """Takes part in the quorum, from now on."""
        if not self.raft.is_voter:
            logger.warning("not a voter: waits until it is added (AddRaftVoter)", voters=str(self.raft.voters))
        self._log.propose = self._propose
        self._snapshots.on_change = self._snapshots_changed
        self._give(lambda: None)

    async def stop(self) -> None:
        """Resigns, waits until another node leads, and ends. Another call does nothing."""
        if self._is_stopped:
            return
        self._give(lambda: self.raft.shut_down(self._now_ms))
        ends_ms = self._now_ms + STOP_MS
        while not self.raft.may_stop and self._now_ms < ends_ms:
            await pause(self._clock, STOP_POLL_MS)  # meanwhile EndQuorumEpoch opens the connections
            if not self._others_can_elect:
                break
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._sending:
            task.cancel()
        if self._slow is not None:
            await asyncio.wait([self._slow])
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(STOPPED)
        await self._channels.close()

    @property
    def _others_can_elect(self) -> bool:
        """True if this node can wait for the election of another: the processes of a majority run. If all voters are
        stopped together, Kafka's last leader waits for the whole STOP_MS."""
        peers = (self._channels.others.peer(location) for location in self.raft.other_voters)
        running = sum(not peer.is_gone for peer in peers)
        return running > len(self.raft.voters) // 2 and self._log.failed is None

    @property
    def _now_ms(self) -> int:
        return self._clock.monotonic_ms()

    def _give(self, take: Callable[[], None]) -> None:
        self._inputs.append(take)
        self._drain()

    def _drain(self) -> None:
        """Gives the core the inputs, until a thread is needed. Does nothing while it is called from within."""
        if self._is_draining:
            return
        self._is_draining = True
        try:
            while self._inputs and self._slow is None and self._takes_part:
                self._inputs.popleft()()
                self._carry_out(self.raft.ready())
        except Exception as error:
            self._failed(error)
        finally:
            self._is_draining = False
        self._set_timer()

    @property
    def _takes_part(self) -> bool:
        return self._log.failed is None and not self._is_stopped

    def _propose(self, encoded: bytearray) -> int:
        if self._slow is not None or not self._takes_part:
            raise NOT_LED
        try:
            end_offset = self.raft.propose(encoded, self._now_ms)
        except KafkaError as error:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, error.message) from error
        except Exception as error:
            self._failed(error)
            raise self._no_longer_leads() from error
        return self._carry_out_proposed(end_offset)

    def upgrade_problem(self, kraft_version: int) -> KafkaError | None:
        """Returns why the quorum can't be upgraded to this kraft.version; None if it can."""
        problem = self.raft.upgrade_problem(kraft_version)
        return None if problem is None else _of_upgrade(problem)

    def upgrade(self, kraft_version: int) -> int:
        """Upgrades the quorum to this kraft.version, as its leader; returns the offset after the records, which are
        not committed yet. Raises KafkaError, with nothing written."""
        if self._slow is not None or not self._takes_part:
            raise NOT_LED
        problem = self.raft.upgrade(kraft_version, self._now_ms)
        if problem is not None:
            raise _of_upgrade(problem)
        return self._carry_out_proposed(self.raft.end_offset)

    def _carry_out_proposed(self, end_offset: int) -> int:
        """Appends what the core has accepted, up to this offset, and returns the offset. Raises NOT_CONTROLLER, and
        KAFKA_STORAGE_ERROR if the disk is full."""
        try:
            self._carry_out(self.raft.ready())
        except Exception as error:
            self._failed(error)
            raise self._no_longer_leads() from error
        self._set_timer()
        if self._log.end_offset < end_offset:
            raise FULL
        return end_offset

    def _no_longer_leads(self) -> KafkaError:
        return KafkaError(ErrorCode.NOT_CONTROLLER, f"this node no longer leads: {self._log.failed}")

    def _snapshots_changed(self) -> None:
        ids = self._snapshots.ids
        self._give(lambda: self.raft.snapshots_changed(self._log.start_offset, ids))

    def resign(self, epoch: int) -> None:
        """Resigns as the leader of this epoch."""
        self._give(lambda: self.raft.resign(epoch, self._now_ms))

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._takes_part:
            return
        delay_ms = max(self.raft.deadline_ms - self._now_ms, 0)
        self._timer = self._clock.call_after(delay_ms, self._tick)

    def _tick(self) -> None:
        self._give(lambda: self.raft.tick(self._now_ms))

    def _failed(self, error: Exception) -> None:
        """Ends this node's part in the quorum after an error of its disk, or after a fault of the core: its state may
        have changed in part, and the disk may lack it."""
        if isinstance(error, OSError | StorageError):
            logger.error("the disk of the metadata log failed", reason=str(error))
        else:
            logger.error("a fault of the quorum's replica", exc_info=error)
        self._log.fail(error)

    # Requests of other nodes.

    @property
    def leader_id(self) -> int:
        return self.raft.leader_id

    async def answer(self, request: Request, version: int, listener: str) -> object:
        """Returns the response to another node's request, which came on this listener. Raises KafkaError,
        LogDirFailure."""
        if not self._takes_part:
            raise STOPPED
        ticket = next(self._tickets)
        self._waiting[ticket] = asyncio.get_running_loop().create_future()
        self._give(lambda: self.raft.request(request, version, listener, ticket, self._now_ms))
        try:
            reply = await self._waiting[ticket]
        except asyncio.CancelledError:
            self._give(lambda: self.raft.forget(ticket))
            raise
        finally:
            del self._waiting[ticket]
        if isinstance(reply.read, PieceWish):
            assert isinstance(reply.response, FetchSnapshotResponse)
            wish = reply.read
            piece = await self._threads.call(lambda: self._log.read_snapshot_piece(*wish))
            fill_piece(reply.response, piece)
        return reply.response

    def describe(self) -> DescribedQuorum:
        """Returns the progress of all replicas. Raises NOT_LEADER_OR_FOLLOWER."""
        if self.raft.role is not Role.LEADER:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        now_ms = self._now_ms
        voters, observers = self.raft.describe(now_ms)
        ahead_ms = self._clock.now_ms() - now_ms
        return DescribedQuorum(
            self.raft.leader_id,
            self.raft.epoch,
            self.raft.high_watermark,
            [in_time_of_day(progress, ahead_ms) for progress in voters],
            [in_time_of_day(progress, ahead_ms) for progress in observers],
        )

    def view(self) -> QuorumView:
        """Returns the numbers of voters and observers."""
        raft = self.raft
        leads = raft.role is Role.LEADER
        _, observers = raft.describe(self._now_ms)
        return QuorumView(len(raft.voters), len(observers), leads and raft.is_changing_voters)

    # Carrying out.

    def _carry_out(self, ready: Ready) -> None:
        """Carries out what the core has decided, at once or in a task."""
        if ready.quorum_state is None and all(isinstance(write, AppendBatches) for write in ready.writes):
            is_full = False
            try:
                for write in ready.writes:
                    assert isinstance(write, AppendBatches)
                    self._log.write(write)
            except LogDirFull:
                is_full = True
            self._finish(ready)
            if is_full:
                self.raft.not_written(self._log.end_offset, self._now_ms)
                self._carry_out(self.raft.ready())
        else:
            self._slow = asyncio.get_running_loop().create_task(self._carry_out_slowly(ready))

    async def _carry_out_slowly(self, ready: Ready) -> None:
        """Carries out what needs a thread; other inputs wait meanwhile."""
        try:
            try:
                for write in ready.writes:
                    await self._write(write)
            except LogDirFull:
                self._next(lambda: self.raft.not_written(self._log.end_offset, self._now_ms))
            if ready.quorum_state is not None:
                voters = None if self.raft.kraft_version else tuple(self.raft.voters.ids)
                state = ready.quorum_state._replace(voters=voters)
                await self._once_there_is_room(lambda: self._log.store(state))
            self._finish(ready)
        except Exception as error:
            self._failed(error)
        finally:
            self._slow = None
        self._drain()

    async def _once_there_is_room(self, write: Callable[[], None]) -> None:
        """Writes `quorum-state`, or truncates. While the disk is full, this node takes no part: nothing may be sent,
        and no record appended, before."""
        while not self._is_stopped:
            try:
                await self._threads.call(write)
                return
            except LogDirFull as error:
                self._log_problem(str(error))
            await pause(self._clock, FULL_POLL_MS)
        raise STOPPED

    async def _write(self, write: Write) -> None:
        if isinstance(write, AppendBatches):
            self._log.write(write)
        elif isinstance(write, TruncateTo):
            before = self._log.end_offset
            await self._once_there_is_room(lambda: self._log.cut_back(write.offset))
            logger.info("uncommitted metadata records truncated", records=before - self._log.end_offset)
        elif isinstance(write, WritePiece):
            await self._threads.call(lambda: self._log.write_part(write.snapshot_id, write.position, write.content))
        elif isinstance(write, DropSnapshot):
            await self._threads.call(lambda: self._log.drop(write.snapshot_id))
        elif isinstance(write, BeginSnapshot):
            logger.info("fetching a snapshot of the metadata", snapshot=write.snapshot_id.file_name)
        else:
            await self._adopt(write)

    async def _adopt(self, write: AdoptSnapshot) -> None:
        """Replaces log and image by a complete snapshot, and tells the core."""
        snapshot_id = write.snapshot_id
        await self._log.applied()
        try:
            snapshot, file = await self._threads.call(lambda: self._log.finish_part(snapshot_id))
            self._loader.replace(snapshot_id, snapshot)
        except StorageError:
            raise
        except (KafkaError, ProtocolError) as error:
            self._log_problem(f"the snapshot {snapshot_id.file_name} cannot be used: {error}")
            await self._threads.call(lambda: self._log.drop(snapshot_id))
            self._next(lambda: self.raft.rejected(snapshot_id, self._now_ms))
            return
        await self._threads.call(lambda: self._log.restart_at(snapshot_id))
        self._next(lambda: self.raft.adopted(snapshot_id, snapshot.quorum, self._now_ms))
        self._snapshots.adopted(file)
        logger.info("started again from a snapshot of the metadata", snapshot=snapshot_id.file_name)

    def _next(self, take: Callable[[], None]) -> None:
        """Gives the core this input before all that wait."""
        self._inputs.appendleft(take)

    def _finish(self, ready: Ready) -> None:
        """Carries out what follows the writes."""
        for send in ready.sends:
            task = asyncio.get_running_loop().create_task(self._send(send))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
        for reply in ready.replies:
            self._reply(reply)
        if ready.flush is not None:
            self._flush = ready.flush
            self._flush_next()
        if ready.leader is not None:
            self._led(ready.leader)
        if ready.high_watermark is not None:
            self._log.commit(min(ready.high_watermark, self._log.end_offset))  # a full disk may lack the last records
        for problem in ready.problems:
            self._log_problem(problem)

    def _led(self, leader: LeaderAndRole) -> None:
        changed = (leader.epoch, leader.leader_id) != (self._log.epoch, self._log.leader_id)
        self._log.led(leader, is_voter=self.raft.is_voter)
        self._loader.image.controller_epoch = leader.epoch
        if changed and leader.leader_id != NOBODY:
            logger.info("the quorum has a leader", node=leader.leader_id, epoch=leader.epoch, role=leader.role.value)
        self.on_leader(leader)

    def _reply(self, reply: RaftReply) -> None:
        waiting = self._waiting.get(reply.ticket)
        if waiting is None or waiting.done():  # the connection is gone
            return
        if isinstance(reply.read, ReadRecords):
            assert isinstance(reply.response, FetchResponse)
            reply.response.responses[0].partitions[0].records = self._log.records(reply.read)
        waiting.set_result(reply)

    def _flush_next(self) -> None:
        """Starts to flush the log, unless a flush is in progress: the next follows it."""
        if self._flushing or self._flush is None or not self._takes_part:
            return
        self._flushing, flush, self._flush = True, self._flush, None

        def flushed(done: asyncio.Future[None]) -> None:
            self._flushing = False
            error = None if done.cancelled() else done.exception()
            if isinstance(error, LogDirFull):
                self._give(lambda: self.raft.not_written(self._log.end_offset, self._now_ms))
                self._flush = self._flush or flush
                self._clock.call_after(FULL_POLL_MS, self._flush_next)
                return
            if error is not None:
                self._log.fail(error)
                return
            self._give(lambda: self.raft.flushed(flush, self._now_ms))
            self._flush_next()

        asyncio.ensure_future(self._threads.call(self._log.flush)).add_done_callback(flushed)

    async def _send(self, send: Send) -> None:
        channel = self._channels.others
        if isinstance(send.request, FetchRequest | FetchSnapshotRequest):
            channel = self._channels.fetches
        request = send.request
        if isinstance(request, ApiVersionsRequest):  # a node rejects it without the name of the software
            request.client_software_name, request.client_software_version = SOFTWARE_NAME, SOFTWARE_VERSION
        response = messages_of(ApiKey(identity(type(request)).key)).response
        answer: object
        try:
            peer = channel.peer(send.destination)
            answer = await peer.send(request, response, timeout_ms=max(send.timeout_ms, 1), max_dials=1)
        except UnsupportedVersion:
            answer = ErrorCode.UNSUPPORTED_VERSION
        except RequestTimedOut:
            answer = ErrorCode.REQUEST_TIMED_OUT
        except (PeerError, ProtocolError) as error:
            self._log_problem(str(error), send.destination)
            answer = ErrorCode.BROKER_NOT_AVAILABLE
        else:
            self._problems.pop(send.destination, None)
        self._give(partial(self._answered, send.correlation_id, answer))

    def _answered(self, correlation_id: int, answer: object) -> None:
        self.raft.response(correlation_id, answer, self._now_ms)  # type: ignore[arg-type]  # of the request's class

    def _log_problem(self, problem: str, subject: object = None) -> None:
        """Logs a problem once, not at every attempt. `subject` is the address of the node that it is about."""
        if problem != self._problems.get(subject):
            self._problems[subject] = problem
            logger.warning("a problem in the quorum", reason=problem)


def _of_upgrade(problem: VoterRejection) -> KafkaError:
    code, message = problem
    return KafkaError(ErrorCode.NOT_CONTROLLER if code is ErrorCode.NOT_LEADER_OR_FOLLOWER else code, message)


def in_time_of_day(progress: ReplicaProgress, ahead_ms: int) -> ReplicaProgress:
    """Returns the progress with times of day; `ahead_ms` is the difference to the monotonic clock."""
    fetched_ms, caught_up_ms = (
        time_ms + ahead_ms if time_ms >= 0 else time_ms for time_ms in (progress.fetched_ms, progress.caught_up_ms)
    )
    return progress._replace(fetched_ms=fetched_ms, caught_up_ms=caught_up_ms)
