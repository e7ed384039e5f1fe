"""A cluster of one broker that gives scripted answers, without sockets. Its time passes only during pauses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from client.address import Address
from commands.client.cluster_client import ClusterClient
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from protocol.versions import ANY_VERSION
from tests.clock import ManualClock

R = TypeVar("R")
T = TypeVar("T")

NODE = 1
TIMEOUT_MS = 30_000
TOPIC_ID = bytes(range(16))

Answer = Callable[[object], object]
"""Returns the answer to a request, or raises the error that its sender gets."""


class ScriptedLink:
    """The link to the broker. Each class of requests has a list of answers; the last answer is repeated."""

    address = Address("127.0.0.1", 9092)

    def __init__(self) -> None:
        self.answers: dict[type, list[Answer]] = {}
        self.requests: list[object] = []

    async def send(
        self,
        request: object,
        response: type[R],
        *,
        timeout_ms: int,
        max_version: int = ANY_VERSION,
        max_dials: int | None = None,
    ) -> R:
        self.requests.append(request)
        await asyncio.sleep(0)
        answers = self.answers[type(request)]
        answer = (answers.pop(0) if len(answers) > 1 else answers[0])(request)
        assert isinstance(answer, response)
        return answer

    async def tell(self, request: object, *, timeout_ms: int, max_version: int = ANY_VERSION) -> None:
        self.requests.append(request)


class ScriptedLinks:
    """The links to the only broker."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.link = ScriptedLink()
        self.bootstrap = [self.link]
        self.placed: list[Mapping[int, Address]] = []

    def place(self, addresses: Mapping[int, Address]) -> None:
        self.placed.append(addresses)

    def node(self, node: int) -> ScriptedLink:
        assert node == NODE
        return self.link

    async def together(self, awaitables: Iterable[Awaitable[T]]) -> list[T]:
        return list(await asyncio.gather(*awaitables))

    async def pause(self, delay_ms: int) -> None:
        self.clock.advance(delay_ms)
        await asyncio.sleep(0)

    async def close(self) -> None:
        pass


class ScriptedCluster:
    """A client of the broker, and the requests that the broker received."""

    def __init__(self, **partitions: int) -> None:
        """`topics` has the number of partitions by topic; a test may change it."""
        self.partitions = partitions
        self.links = ScriptedLinks()
        self.client = ClusterClient(self.links, TIMEOUT_MS)
        self.answer(MetadataRequest, self.metadata)
        self.answer(FindCoordinatorRequest, lambda _: FindCoordinatorResponse(node_id=NODE, coordinators=[]))

    def answer(self, request: type, *answers: object) -> None:
        """Sets the answers to a class of requests: errors to raise, functions of the request, or responses."""
        self.links.link.answers[request] = [_answer(one) for one in answers]

    def requests(self, request: type[T]) -> list[T]:
        """Returns the received requests of a class."""
        return [one for one in self.links.link.requests if isinstance(one, request)]

    def metadata(self, request: object) -> MetadataResponse:
        assert isinstance(request, MetadataRequest)
        names = [topic.name or "" for topic in request.topics or ()]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=NODE, host="127.0.0.1", port=9092)],
            topics=[self._topic(name) for name in names],
            controller_id=NODE,
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        count = self.partitions.get(name, 0)
        partitions = [
            MetadataResponsePartition(
                error_code=0, partition_index=index, leader_id=NODE, replica_nodes=[NODE], isr_nodes=[NODE]
            )
            for index in range(count)
        ]
        return MetadataResponseTopic(error_code=0 if count else 3, name=name, topic_id=TOPIC_ID, partitions=partitions)


def _answer(answer: object) -> Answer:
    def answered(request: object) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer

    return answered
