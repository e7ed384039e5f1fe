"""Creates topics and partitions: the controller creates them; the answer waits until clients can write to them on this
broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from broker.replica.new_logs import NewLogs
from coordinator.cluster.controller import THIS_BROKER, Asker, Controller
from protocol.errors import ErrorCode, KafkaError, error_code
from protocol.lazy import lazy

if TYPE_CHECKING:
    from protocol.messages import create_partitions, create_topics
    from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
    from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
else:  # with the first request
    create_partitions = lazy("protocol.messages.create_partitions")
    create_topics = lazy("protocol.messages.create_topics")


CREATE_TIMEOUT_MS = 30_000
"""Timeout for the creation of topics that the broker itself creates."""

DEFAULT_COUNT = -1
"""The number of partitions or replicas that stands for the controller's default."""


class OwnTopic(NamedTuple):
    """A topic that the broker itself creates."""

    name: str
    partitions: int = DEFAULT_COUNT
    replication_factor: int = DEFAULT_COUNT
    configs: Mapping[str, str] = {}

    def requested(self) -> CreatableTopic:
        """Returns the topic of a CreateTopics request."""
        return create_topics.CreatableTopic(
            name=self.name,
            num_partitions=self.partitions,
            replication_factor=self.replication_factor,
            assignments=[],
            configs=[
                create_topics.CreatableTopicConfig(name=name, value=value) for name, value in self.configs.items()
            ],
        )


class TopicCreator:
    """Creates topics for clients, coordinators and share groups."""

    def __init__(self, controller: Controller, new_logs: NewLogs) -> None:
        self._controller = controller
        self.new_logs = new_logs

    async def create(self, request: CreateTopicsRequest, asker: Asker = THIS_BROKER) -> CreateTopicsResponse:
        """Creates topics, and returns once clients can write to them. Raises KafkaError."""
        response = await self._controller.submit(request, create_topics.CreateTopicsResponse, asker)
        await self.made(topic.name for topic in response.topics)
        return response

    async def create_own(self, topics: list[CreatableTopic], asker: Asker = THIS_BROKER) -> CreateTopicsResponse:
        """Creates topics that the broker itself needs, as `create` does."""
        return await self.create(create_topics.CreateTopicsRequest(topics=topics, timeout_ms=CREATE_TIMEOUT_MS), asker)

    async def ensure(self, topic: OwnTopic) -> None:
        """Creates a topic if it doesn't exist. Raises KafkaError."""
        (result,) = (await self.create_own([topic.requested()])).topics
        if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise KafkaError(error_code(result.error_code), result.error_message)

    async def create_partitions(
        self, request: CreatePartitionsRequest, asker: Asker = THIS_BROKER
    ) -> CreatePartitionsResponse:
        """Creates partitions, and returns once clients can write to them. Raises KafkaError."""
        response = await self._controller.submit(request, create_partitions.CreatePartitionsResponse, asker)
        await self.made(topic.name for topic in response.results)
        return response

    async def made(self, names: Iterable[str]) -> None:
        """Returns once the queued logs of these topics exist."""
        await self.new_logs.made(names)
