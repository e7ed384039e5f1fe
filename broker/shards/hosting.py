"""A coordinator: one shard on each partition of an internal topic that this broker leads.

The topic is created when it is first needed. A partition's shard is loaded when this broker begins to lead the
partition, and unloaded when another broker does or the partition is removed. Source: CoordinatorRuntime and
GroupCoordinatorService.onElection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.logging import get_logger
from broker.replica.partition import Partition
from broker.replica.topics import OwnTopic
from broker.shards.environment import Environment
from broker.shards.storage import PartitionStorage, Sized
from broker.shards.translations import seen_by_client
from client.futures import retrieve
from coordinator.engine.engine import Engine
from coordinator.engine.loaded import Status
from coordinator.engine.machine import Machine, Serde
from coordinator.engine.result import Decision, Result, Ticket
from protocol.errors import ErrorCode, KafkaError
from protocol.java_hash import java_hash
from protocol.types import Buffer, TopicPartition

A = TypeVar("A")
R = TypeVar("R")
S = TypeVar("S")
E = TypeVar("E", bound=Sized)

LOAD_AGAIN_MS = 1_000
"""Pause after a failed write: a full disk or missing replicas take time to recover."""

logger = get_logger(__name__)


class InternalTopic(NamedTuple):
    """The name and the options of a coordinator's topic."""

    name: str
    partitions: Callable[[BrokerConfig], int]
    replication_factor: Callable[[BrokerConfig], int]
    configs: Callable[[BrokerConfig], Mapping[str, str]]

    def creatable(self, config: BrokerConfig) -> OwnTopic:
        """Returns the topic as these options create it."""
        return OwnTopic(self.name, self.partitions(config), self.replication_factor(config), self.configs(config))


def min_insync_replicas(config: BrokerConfig, min_isr: int, brokers: int) -> str:
    """Returns min.insync.replicas of an internal topic. If the replication factor is lowered to the number of brokers,
    so is min.insync.replicas."""
    return str(max(1, min(min_isr, brokers)) if config.lowers_replication_factors else min_isr)


class ShardParts(NamedTuple, Generic[S, R, E]):
    """A shard of class S with records R, which its serde encodes as E."""

    shard: S
    serde: Serde[R, Sequence[E], Buffer]
    batches: Callable[[Sequence[E]], bytearray]
    """Packs encoded records into record batches."""
    activate: Callable[[int], None] | None = None
    """Called with the time once all records are applied."""


class Place(NamedTuple, Generic[S, R]):
    """A shard on its partition, in one leader epoch of the partition."""

    partition: Partition
    leader_epoch: int
    shard: S
    load: Callable[[Engine[R]], Coroutine[None, None, None]]
    flush: Callable[[], None]
    """Writes the gathered records."""
    abandon: Callable[[KafkaError], None]
    """Fails the requests that wait for gathered records, which will not be written."""


def placed(
    seat: ShardParts[S, R, E], partition: Partition, clock: Clock, linger_ms: Callable[[], int] | None
) -> Place[S, R]:
    """Puts a shard on a partition."""
    storage = PartitionStorage(partition, seat.batches, clock, linger_ms)
    machine = cast(Machine[R], seat.shard)  # a type variable's bound cannot name another: S is a Machine of R

    async def load(engine: Engine[R]) -> None:
        await engine.load(partition.name.partition, machine, storage, seat.serde, seat.activate)

    return Place(partition, storage.leader_epoch, seat.shard, load, storage.flush, storage.abandon)


class KeyCoordinator(Protocol):
    """A coordinator for callers that need only the broker of a key."""

    @property
    def topic(self) -> InternalTopic: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...

    async def leader_of(self, key: str) -> int:
        """Returns the broker that coordinates the key."""
        ...


class Coordinator(Generic[S, R]):
    """Shards of class S, whose records are R, on a topic's partitions, by partition number."""

    def __init__(
        self,
        environment: Environment,
        topic: InternalTopic,
        seat: Callable[[Partition], ShardParts[S, R, E]],
        linger_ms: Callable[[], int] | None,
        write_timeout_ms: Callable[[Sequence[R]], int],
    ) -> None:
        self.environment = environment
        self.topic = topic
        self.shards: dict[int, S] = {}
        self._place: Callable[[Partition], Place[S, R]] = lambda partition: placed(
            seat(partition), partition, environment.clock, linger_ms
        )
        self._places: dict[int, Place[S, R]] = {}
        self._engine: Engine[R] = Engine(environment.clock, self._failed, write_timeout_ms, seen_by_client, self._fault)
        self._next_to_load: set[int] = set()
        """Partitions whose shard begins to load in the event loop's next turn."""
        self._creation: asyncio.Task[None] | None = None
        self._creation_failure: str | None = None
        """The reason of the last failure to create the topic, which is logged once."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopped = False

    def start(self) -> None:
        """Loads the shards of partitions that this broker leads, and follows the partitions' roles from now on."""
        for partition in self.environment.replicas.topic(self.topic.name).values():
            self._follow(partition)
        self.environment.replicas.subscribe_to_roles(self._follow)

    def stop(self) -> None:
        """Writes gathered records; requests that still wait then get NOT_COORDINATOR."""
        self._stopped = True
        for index, place in list(self._places.items()):
            place.flush()
            self._give_up(index)

    # Which partition.

    @property
    def partition_count(self) -> int:
        """The number of the topic's partitions, or of the partitions that it will be created with."""
        topic = self.environment.image.topic(self.topic.name)
        return len(topic.partitions) if topic is not None else self.topic.partitions(self.environment.config)

    def partition_of(self, key: str) -> int:
        """Returns the partition that a key belongs to, by the absolute value of its Java hash code."""
        return abs(java_hash(key)) % self.partition_count

    def elsewhere(self, index: int) -> int | None:
        """Returns the other broker that leads a partition; None if its shard is here, or it has no leader."""
        if index in self.shards:
            return None
        return self.environment.leader_elsewhere(TopicPartition(self.topic.name, index))

    async def leader_of(self, key: str) -> int:
        """Returns the broker that coordinates the key; creates the topic if it doesn't exist. Raises
        COORDINATOR_NOT_AVAILABLE."""
        topic = self.environment.image.topic(self.topic.name)
        if topic is None or not topic.partitions:
            await self._create_once()
            topic = self.environment.image.topic(self.topic.name)
        await self.environment.topics.made((self.topic.name,))
        partition = None if topic is None else topic.partitions.get(self.partition_of(key))
        if partition is None or partition.leader < 0:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return partition.leader

    async def _create_once(self) -> None:
        """Creates the topic once, for all clients that come to a new broker at the same time."""
        if self._creation is None:
            self._creation = asyncio.ensure_future(self._create())
            self._creation.add_done_callback(self._created)
        await asyncio.shield(self._creation)

    def _created(self, creation: asyncio.Future[None]) -> None:
        """Ends the creation, also if the clients that waited for it are gone: the next client tries again."""
        self._creation = None
        retrieve(creation)

    async def _create(self) -> None:
        creatable = self.topic.creatable(self.environment.config)
        for result in (await self.environment.topics.create_own([creatable.requested()])).topics:
            if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                if result.error_message != self._creation_failure:  # each request that needs the topic tries again
                    self._creation_failure = result.error_message
                    logger.error("internal topic not created", topic=result.name, reason=result.error_message)
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, result.error_message)
        self._creation_failure = None

    # Requests.

    def shard(self, index: int) -> S:
        """Returns the shard of a partition. Raises NOT_COORDINATOR."""
        shard = self.shards.get(index)
        if shard is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return shard

    def submit_at(self, index: int, decide: Callable[[S, Ticket[A], int], Result[R]]) -> asyncio.Future[A]:
        """Decides in a partition's shard: (shard, ticket, now_ms) → Result. Returns the answer's future, which is done
        if it needn't wait. Raises KafkaError as clients see it."""
        return self.submitted(index, partial(decide, self.shard(index)))

    def submitted(self, index: int, decision: Decision[A, R]) -> asyncio.Future[A]:
        """Submits a decision of a partition's shard to the engine, as `submit_at` does."""
        try:
            return self._engine.submit(index, decision)
        except KafkaError as error:
            if index in self._next_to_load:
                raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) from error
            raise seen_by_client(error) from None  # its own cause would be a cycle

    def flush(self, index: int) -> None:
        """Writes a partition's gathered records, so that the log has all decisions. Raises NOT_COORDINATOR."""
        place = self._places.get(index)
        if place is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        place.flush()

    def is_active(self, index: int) -> bool:
        """True if the partition's shard is here and loaded."""
        return self._engine.status(index) is Status.ACTIVE

    # Leadership.

    def _follow(self, partition: Partition) -> None:
        """Puts a shard on the partition if this broker leads it, loaded in its leader epoch, and otherwise removes it.
        This is called within each change of a role, so that no decision comes between one leader's last append and the
        next leader's first."""
        topic, index = partition.name
        if topic != self.topic.name:
            return
        place = self._places.get(index)
        is_here = self.environment.replicas.topic(topic).get(index) is partition
        if place is not None and (is_here or place.partition is partition):
            is_same = is_here and place.partition is partition and place.leader_epoch == partition.leader_epoch
            if is_same and partition.leads:
                return
            self._give_up(index)
        if is_here and partition.leads and not self._stopped:
            self._host(partition)

    def _host(self, partition: Partition) -> None:
        index = partition.name.partition
        place = self._place(partition)
        self.shards[index], self._places[index] = place.shard, place
        self._next_to_load.add(index)
        self._spawn(self._load(index, place))

    async def _load(self, index: int, place: Place[S, R]) -> None:
        """Loads a shard. A log that can't be read has no coordinator, and its clients get NOT_COORDINATOR. The log of a
        shard that was unloaded meanwhile may have been truncated by the next leader."""
        if self._places.get(index) is not place:
            return
        self._next_to_load.discard(index)
        try:
            await place.load(self._engine)
        except Exception as error:
            if self._places.get(index) is place:
                logger.error("coordinator not loaded", topic=self.topic.name, partition=index, reason=repr(error))
                self._engine.unload(index)

    def _give_up(self, index: int) -> None:
        """Unloads a shard and drops its gathered records: another broker leads by now, or this broker in an epoch that
        the shard doesn't know."""
        if self.shards.pop(index, None) is not None:
            self._places.pop(index).abandon(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            self._engine.unload(index)

    def _failed(self, key: Hashable, error: KafkaError) -> None:
        """Loads the shard again from the log after a failed write, unless another broker leads by now."""
        assert isinstance(key, int)
        place = self._places.get(key)
        if place is None or not place.partition.leads:
            return
        logger.error("coordinator failed", topic=self.topic.name, partition=key, reason=str(error))
        self.environment.clock.call_at(self.environment.clock.now_ms() + LOAD_AGAIN_MS, lambda: self._load_again(key))

    def _fault(self, key: Hashable, error: Exception) -> None:
        """Logs a request or a timer that failed by a bug; other requests aren't affected."""
        logger.error(
            "coordinator failed to handle a request or timer", topic=self.topic.name, partition=key, exc_info=error
        )

    def _load_again(self, index: int) -> None:
        if self._engine.status(index) is Status.FAILED:
            partition = self._places[index].partition
            self._give_up(index)
            self._follow(partition)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
