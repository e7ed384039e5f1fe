"""Creates topics and partitions: the controller creates them; the answer waits until clients can write to them on this
broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from broker.replica.new_logs import NewLogs
from coordinator.cluster.controller import THIS_BROKER, Asker, Controller

if TYPE_CHECKING:  # imported with the first request
    from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
    from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse


class TopicCreator:
    """Creates topics for clients, coordinators and share groups."""

    def __init__(self, controller: Controller, new_logs: NewLogs) -> None:
        self._controller = controller
        self.new_logs = new_logs

    async def create(self, request: CreateTopicsRequest, asker: Asker = THIS_BROKER) -> CreateTopicsResponse:
        """Creates topics, and returns once clients can write to them. Raises KafkaError."""
        from protocol.messages.create_topics import CreateTopicsResponse

        response = await self._controller.submit(request, CreateTopicsResponse, asker)
        await self.made(topic.name for topic in response.topics)
        return response

    async def create_partitions(
        self, request: CreatePartitionsRequest, asker: Asker = THIS_BROKER
    ) -> CreatePartitionsResponse:
        """Creates partitions, and returns once clients can write to them. Raises KafkaError."""
        from protocol.messages.create_partitions import CreatePartitionsResponse

        response = await self._controller.submit(request, CreatePartitionsResponse, asker)
        await self.made(topic.name for topic in response.results)
        return response

    async def made(self, names: Iterable[str]) -> None:
        """Returns once the queued logs of these topics exist."""
        await self.new_logs.made(names)
