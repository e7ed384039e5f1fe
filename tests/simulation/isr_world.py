"""Three brokers with replicas of one partition: leaders are real, logs and followers are modelled.

Brokers die and come back, perhaps with an older log; fetches, metadata and AlterPartition are late, lost or duplicated.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from enum import Enum
from functools import partial
from random import Random
from typing import NamedTuple, cast

from broker.replica.alter_partition import AlterPartitionManager
from broker.replica.partition import Partition
from broker.replica.replicas import Replicas
from coordinator.cluster.topics.topic import NO_LEADER
from coordinator.replication.isr import NO_BROKER_EPOCH, Follower, IsrRules
from coordinator.replication.roles import FollowerFetch, Leading, next_role
from protocol.errors import ErrorCode, KafkaError, error_code
from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from protocol.types import TopicPartition
from storage.appending.appended import Appended
from storage.config import LogConfig
from storage.log import Log
from storage.segment.time_index import NO_TIMESTAMP
from tests.simulation.isr_controller import ClusterState, ControllerModel
from tests.simulation.virtual_time import virtual_clock

NAME, TOPIC_ID = TopicPartition("t", 0), bytes(15) + b"\x07"
BROKER_IDS = (1, 2, 3)
MIN_ISR = 2
MAX_LAG_MS = 500
SESSION_S = 1.0
CALM_S = 20
RECORD = memoryview(b"r")


class IsrBreach(Enum):
    """The kinds of violated invariants."""

    BACK = "the high watermark of a leader went back"
    AHEAD = "it passed the end of a log that is in sync, or may be"
    BELOW_MIN_ISR = "it moved with fewer in sync than min.insync.replicas"
    DIVERGED = "two leaders committed different records at one offset"
    INCOMPLETE = "the log of a replica that is in sync lacks a committed record"
    TWO_REQUESTS = "a broker had two AlterPartitions on their way"


class Entry(NamedTuple):
    """A record in the model."""

    leader_epoch: int
    value: int


class ModelLog:
    """The log of one replica, as far as Partition uses it; it survives its process."""

    first_unstable_offset = None
    flushes = False
    log_start_offset = 0

    def __init__(self, world: IsrWorld, broker_id: int) -> None:
        self.config = LogConfig(min_insync_replicas=MIN_ISR)
        self.entries: list[Entry] = []
        self.epochs: dict[int, int] = {}
        """The start offsets of the epochs."""
        self.high_watermark = 0
        self._world = world
        self._broker_id = broker_id

    @property
    def log_end_offset(self) -> int:
        return len(self.entries)

    @property
    def last_epoch(self) -> int:
        return self.entries[-1].leader_epoch if self.entries else -1

    def assign_leader_epoch(self, epoch: int, offset: int) -> None:
        self.epochs[epoch] = offset

    def append(self, records: memoryview, *, leader_epoch: int, **_: object) -> Appended:
        offset = len(self.entries)
        self.entries.append(Entry(leader_epoch, self._world.next_value()))
        return Appended(offset, offset, NO_TIMESTAMP, 0, duplicate=False)

    def replicate(self, entries: list[Entry]) -> None:
        for entry in entries:
            self.epochs.setdefault(entry.leader_epoch, len(self.entries))
            self.entries.append(entry)

    def truncate(self, offset: int) -> None:
        del self.entries[offset:]
        self.epochs = {epoch: start for epoch, start in self.epochs.items() if start < offset}
        self.high_watermark = min(self.high_watermark, offset)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """Returns the largest epoch up to this one, and its end."""
        largest = max((other for other in self.epochs if other <= epoch), default=-1)
        later = [start for other, start in self.epochs.items() if other > largest]
        return largest, min(later, default=self.log_end_offset)

    def update_high_watermark(self, offset: int) -> None:
        self._world.check_commit(self._broker_id, self, offset)
        self.high_watermark = offset


class SimulatedBroker:
    """A sequence of processes on one log."""

    def __init__(self, world: IsrWorld, broker_id: int) -> None:
        self.world = world
        self.broker_id = broker_id
        self.log = ModelLog(world, broker_id)
        self.is_alive = False
        self.epoch = NO_BROKER_EPOCH
        self.in_flight = 0

    def start(self) -> None:
        """Starts a process, whose log may have lost its end if the other replicas are in sync without it."""
        controller, dice = self.world.controller, self.world.dice
        self.epoch = controller.register(self.broker_id)
        if self.broker_id not in controller.state.partition.isr and dice.random() < 0.7:
            self.log.truncate(dice.randint(0, self.log.log_end_offset))
        self.is_alive = True
        self.applied = len(controller.history) - 1
        self.state = controller.state
        rules = IsrRules(self._may_be_in_sync, lambda: MAX_LAG_MS, self._broker_epoch)
        self.partition = Partition(NAME, TOPIC_ID, cast(Log, self.log), rules)
        self.manager = AlterPartitionManager(
            cast(Replicas, self), self.broker_id, lambda: self.epoch, self._alter, virtual_clock(), dice.random
        )
        self.partition.propose = self.manager.propose
        self._apply(self.state)
        jobs = (self._hear(), self._fetch(), self._shrink(), self._produce(), self.unfence_later())
        self.jobs = [asyncio.ensure_future(job) for job in jobs]

    def topic(self, name: str) -> dict[int, Partition]:
        """Returns the topic's partitions, as Replicas does."""
        return {NAME.partition: self.partition}

    async def kill(self) -> None:
        """Ends the process."""
        self.is_alive = False
        for job in self.jobs:
            job.cancel()
        await self.manager.stop()
        self.in_flight = 0

    # Metadata

    def _apply(self, state: ClusterState) -> None:
        self.state = state
        now_ms, end = virtual_clock().now_ms(), self.log.log_end_offset
        self.partition.become(next_role(self.partition.role, state.partition, self.broker_id, end, now_ms), now_ms)

    async def _hear(self) -> None:
        while True:
            await self.world.pause(0.05)
            history = self.world.controller.history
            if self.applied + 1 < len(history):
                self.applied += 1
                self._apply(history[self.applied])

    async def unfence_later(self) -> None:
        """Lets the controller unfence the broker after a while, unless it has died by then."""
        await self.world.pause(0.3)
        self.world.controller.unfence(self.broker_id)

    def _may_be_in_sync(self, follower: Follower) -> bool:
        broker = self.state.brokers.get(follower.replica_id)
        return broker is not None and not broker.fenced and follower.broker_epoch == broker.epoch

    def _broker_epoch(self, broker_id: int) -> int:
        broker = self.state.brokers.get(broker_id)
        return NO_BROKER_EPOCH if broker is None or broker.fenced else broker.epoch

    # As a leader

    async def _shrink(self) -> None:
        while True:
            await asyncio.sleep(MAX_LAG_MS / 2000)
            self.partition.shrink_isr(virtual_clock().now_ms())

    async def _produce(self) -> None:
        while True:
            await self.world.pause(0.05)
            if self.partition.leads and not self.world.is_calm:
                try:
                    self.partition.append(RECORD, virtual_clock().now_ms(), for_all=self.world.dice.random() < 0.7)
                except KafkaError as error:
                    if error.code is not ErrorCode.NOT_ENOUGH_REPLICAS:
                        raise

    async def _alter(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        world = self.world
        self.in_flight += 1
        if self.in_flight > 1:
            world.breaches[IsrBreach.TWO_REQUESTS] += 1
        try:
            await world.pause(0.05)
            if world.is_lost():
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
            response = world.controller.alter_partition(request)
            world.altered[error_code(response.topics[0].partitions[0].error_code)] += 1
            if world.is_lost():
                response = world.controller.alter_partition(request)  # a copy of it
            await world.pause(0.05)
            if world.is_lost():
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
            return response
        finally:
            self.in_flight -= 1

    # As a follower

    async def _fetch(self) -> None:
        while True:
            await self.world.pause(0.03)
            role = self.partition.role
            if not isinstance(role, Leading) and role.leader_id not in (NO_LEADER, self.broker_id):
                await self._fetch_from(self.world.brokers[role.leader_id], role.epoch)

    async def _fetch_from(self, leader: SimulatedBroker, leader_epoch: int) -> None:
        offset, last_epoch = self.log.log_end_offset, self.log.last_epoch
        fetch = FollowerFetch(self.broker_id, self.epoch, offset, 0, virtual_clock().now_ms())
        if self.world.is_lost():  # it comes late, when nobody waits for the answer any more
            self.world.later(partial(leader.fetched_by, fetch, leader_epoch, last_epoch))
            return
        await self.world.pause(0.01)
        answer = leader.fetched_by(fetch, leader_epoch, last_epoch)
        await self.world.pause(0.01)
        if answer is None or isinstance(self.partition.role, Leading) or self.partition.role.epoch != leader_epoch:
            return
        if answer.end_of_epoch is not None:
            epoch, end = answer.end_of_epoch
            self.log.truncate(min(end, self.log.end_of_epoch(epoch)[1], offset))
            return
        self.log.replicate(answer.entries)
        self.log.high_watermark = max(self.log.high_watermark, min(answer.high_watermark, self.log.log_end_offset))

    def fetched_by(self, fetch: FollowerFetch, leader_epoch: int, last_epoch: int) -> FetchAnswer | None:
        """Returns the leader's answer to a follower; None for an error."""
        partition, log = self.partition, self.log
        if not self.is_alive or not partition.leads or partition.role.epoch != leader_epoch:
            return None
        if last_epoch >= 0:
            epoch, end = log.end_of_epoch(last_epoch)
            if epoch < last_epoch or end < fetch.offset:
                return FetchAnswer([], 0, (epoch, end))
        if fetch.offset > log.log_end_offset:
            return None
        try:
            partition.fetched(fetch, leader_epoch)
        except KafkaError as error:
            if error.code is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
                raise
            return None
        entries = log.entries[fetch.offset : fetch.offset + self.world.dice.randint(0, 4)]
        return FetchAnswer(entries, log.high_watermark, None)


class FetchAnswer(NamedTuple):
    """The records, or the point at which the logs diverge."""

    entries: list[Entry]
    high_watermark: int
    end_of_epoch: tuple[int, int] | None


class IsrWorld:
    """The world, and its committed records."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.breaches: Counter[IsrBreach] = Counter()
        self.altered: Counter[ErrorCode] = Counter()
        """The answers to AlterPartition, by code."""
        self.committed: list[Entry] = []
        self.is_calm = False
        self.controller = ControllerModel(BROKER_IDS)
        self.brokers = {broker_id: SimulatedBroker(self, broker_id) for broker_id in BROKER_IDS}
        self.controller.changed = self.check_candidates
        self._values = 0

    def next_value(self) -> int:
        self._values += 1
        return self._values

    async def pause(self, mean_s: float) -> None:
        await asyncio.sleep(self.dice.expovariate(1 / mean_s))

    def is_lost(self) -> bool:
        return not self.is_calm and self.dice.random() < 0.15

    def later(self, deliver: Callable[[], object]) -> None:
        """Delivers a request after a while."""
        asyncio.get_running_loop().call_later(self.dice.expovariate(1), deliver)

    # What holds

    def check_commit(self, broker_id: int, log: ModelLog, offset: int) -> None:
        """Checks a leader that moves its high watermark."""
        role, truth = self.brokers[broker_id].partition.role, self.controller.state.partition
        assert isinstance(role, Leading)
        if offset < log.high_watermark:
            self.breaches[IsrBreach.BACK] += 1
        if len(role.isr.committed) < MIN_ISR:
            self.breaches[IsrBreach.BELOW_MIN_ISR] += 1
        if role.epoch == truth.leader_epoch:
            ends = [self.brokers[other].log.log_end_offset for other in truth.isr]
            if offset > min(ends):
                self.breaches[IsrBreach.AHEAD] += 1
        for at in range(offset):
            if at == len(self.committed):
                self.committed.append(log.entries[at])
            elif self.committed[at] != log.entries[at]:
                self.breaches[IsrBreach.DIVERGED] += 1

    def check_candidates(self) -> None:
        """Checks all replicas that may be elected, at each record of the controller."""
        for broker_id in self.controller.state.partition.isr:
            if self.brokers[broker_id].log.entries[: len(self.committed)] != self.committed:
                self.breaches[IsrBreach.INCOMPLETE] += 1

    # Its course

    async def run(self, rounds: int) -> bool:
        """Runs the world. True if, after the last failure, all replicas are in sync and all records are committed."""
        for broker in self.brokers.values():
            broker.start()
        for _ in range(rounds):
            await self.pause(0.4)
            await self._strike()
        self.is_calm = True
        for broker in self.brokers.values():
            if not broker.is_alive:
                self.controller.fence(broker.broker_id)
                broker.start()
        await asyncio.sleep(CALM_S)
        has_converged = self._has_converged()
        for broker in self.brokers.values():
            await broker.kill()
        return has_converged

    async def _strike(self) -> None:
        dead = [broker for broker in self.brokers.values() if not broker.is_alive]
        if dead and self.dice.random() < 0.6:
            self.dice.choice(dead).start()
            return
        broker = self.brokers[self.dice.choice(BROKER_IDS)]
        match self.dice.randint(0, 5):
            case 0 if broker.is_alive:
                await broker.kill()
                asyncio.get_running_loop().call_later(SESSION_S, self._expire, broker, broker.epoch)
            case 5 if broker.is_alive:  # it is back before anybody has noticed
                await broker.kill()
                broker.start()
            case 1:
                self.controller.elect(broker.broker_id)
            case 2:
                self.controller.touch()
            case 3 if broker.is_alive:  # the controller has not heard of it for long
                self.controller.fence(broker.broker_id)
                broker.jobs.append(asyncio.ensure_future(broker.unfence_later()))
            case _:
                await self.pause(1)

    def _expire(self, broker: SimulatedBroker, epoch: int) -> None:
        if not broker.is_alive and broker.epoch == epoch and not self.is_calm:
            self.controller.fence(broker.broker_id)

    def _has_converged(self) -> bool:
        partition = self.controller.state.partition
        leader = self.brokers.get(partition.leader)
        logs = [broker.log for broker in self.brokers.values()]
        return (
            leader is not None
            and sorted(partition.isr) == [*BROKER_IDS]
            and leader.log.high_watermark == leader.log.log_end_offset
            and all(log.entries == leader.log.entries for log in logs)
        )
