"""Transactional clients of a cluster: each request goes to the coordinator or leader that they know of."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from protocol.errors import ErrorCode
from protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.types import TopicPartition
from tests.broker.transacting import TransactionalClient
from tests.simulation.broker_world import Killed
from tests.simulation.cluster.clients import Client, NoAnswer
from tests.simulation.cluster.world import ClusterWorld
from tests.simulation.transaction_clients import PARTITIONS, SimulatedConsumer, SimulatedProducer
from tests.simulation.transaction_history import UNKNOWN_TIME_MS, History, Seen
from tests.simulation.virtual_time import virtual_clock

A = TypeVar("A")
R = TypeVar("R")

TRANSACTION = 1
"""The key type of transactional ids in FindCoordinator."""
LOSS = 0.02
MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class RoutedConnection:
    """The connection of `TransactionalClient` to a cluster, for one transactional id."""

    def __init__(self, client: Client, name: str, loss: float = LOSS) -> None:
        """`loss` is the probability that an answer is lost."""
        self._client = client
        self._name = name
        self._loss = loss
        self._coordinator: int | None = None

    async def ask(self, request: object, version: int, response: type[R]) -> R:
        """Returns the answer to a request. Raises Killed if there is no answer."""
        try:
            answer = await self._routed(request, version, response)
        except NoAnswer:
            raise Killed from None
        if self._client.world.dice.random() < self._loss:
            raise Killed
        return answer

    async def _routed(self, request: object, version: int, response: type[R]) -> R:
        if isinstance(request, ProduceRequest):
            data = request.topic_data[0]
            return await self._led(TopicPartition(data.name, data.partition_data[0].index), request, version, response)
        if isinstance(request, FetchRequest):
            topic = request.topics[0]
            name = TopicPartition(topic.topic, topic.partitions[0].partition)
            return await self._led(name, request, version, response)
        if isinstance(request, InitProducerIdRequest | AddPartitionsToTxnRequest | EndTxnRequest):
            return await self._coordinated(request, version, response)
        assert isinstance(request, FindCoordinatorRequest), request
        return await self._client.ask(self._any(), request, response, version)

    def _any(self) -> int:
        return self._client.world.dice.choice(self._client.node_ids)

    async def _led(self, name: TopicPartition, request: object, version: int, response: type[R]) -> R:
        try:
            answer = await self._client.ask(await self._client.leader(name), request, response, version)
        except NoAnswer:
            self._client.forget_leader(name)
            raise
        if code_in(answer):
            self._client.forget_leader(name)
        return answer

    async def _coordinated(self, request: object, version: int, response: type[R]) -> R:
        if self._coordinator is None:
            self._coordinator = await self._find()
        coordinator, self._coordinator = self._coordinator, None
        answer = await self._client.ask(coordinator, request, response, version)
        if getattr(answer, "error_code", ErrorCode.NONE) not in MOVED and not self._is_moved(answer):
            self._coordinator = coordinator
        return answer

    def _is_moved(self, answer: object) -> bool:
        topics = getattr(answer, "results_by_topic_v3_and_below", ())
        return any(
            partition.partition_error_code in MOVED for topic in topics for partition in topic.results_by_partition
        )

    async def _find(self) -> int:
        request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[self._name])
        answer = await self._client.ask(self._any(), request, FindCoordinatorResponse, 4)
        (coordinator,) = answer.coordinators
        if coordinator.error_code:
            await self._client.pause()
            raise NoAnswer
        return coordinator.node_id


def code_in(answer: object) -> int:
    """Returns the error in a response of Produce or Fetch."""
    if isinstance(answer, ProduceResponse):
        return answer.responses[0].partition_responses[0].error_code
    assert isinstance(answer, FetchResponse)
    return answer.responses[0].partitions[0].error_code


def client_of(world: ClusterWorld, host: str) -> Client:
    """Returns a client with its own process."""
    return Client(world, {node.node_id: node.host for node in world.brokers.values()}, host)


class ClusterProducer(SimulatedProducer):
    """The simulated producer, for a cluster."""

    def __init__(self, world: ClusterWorld, history: History, host: str, name: str, *, v2: bool) -> None:
        super().__init__(world, history, name, v2=v2)
        self.host = client_of(world, host)
        self.client = TransactionalClient(RoutedConnection(self.host, name), virtual_clock().now_ms)

    def spawn(self, transactions: int) -> asyncio.Task[None]:
        return self.host.process.spawn(self.run(transactions))


class ClusterConsumer(SimulatedConsumer):
    """The simulated consumer, for a cluster."""

    def __init__(
        self, world: ClusterWorld, history: History, name: str, *, committed: bool, loss: float = LOSS
    ) -> None:
        super().__init__(world, history, name, committed=committed)
        self.host = client_of(world, name)
        self.client = TransactionalClient(RoutedConnection(self.host, name, loss))

    def spawn(self, work: Coroutine[Any, Any, A]) -> asyncio.Task[A]:
        return self.host.process.spawn(work)

    async def read_all(self) -> list[Seen]:
        """Reads the partitions from start to end, after all activity has stopped."""
        reads: list[Seen] = []
        for partition in range(PARTITIONS):
            empty = 0
            while empty < 3:
                try:
                    seen = await self.poll(partition)
                except Killed:
                    continue
                empty = 0 if seen else empty + 1
                reads += [read._replace(time_ms=UNKNOWN_TIME_MS) for read in seen]
        return reads
