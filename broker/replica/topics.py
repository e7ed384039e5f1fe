"""Creates topics and partitions: the controller creates them, and the answer waits until clients can write to them
here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from broker.replica.new_logs import NewLogs
from coordinator.cluster.controller import Controller
from coordinator.cluster.security.mutation_quota import Charge, unlimited

if TYPE_CHECKING:
    from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
    from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse


class TopicCreator:
    """Creates topics for clients, coordinators and share groups."""

    def __init__(self, controller: Controller, new_logs: NewLogs) -> None:
        self._controller = controller
        self.new_logs = new_logs

    async def create(self, request: CreateTopicsRequest, charge: Charge = unlimited) -> CreateTopicsResponse:
        """Creates topics, and returns once clients can write to them; `charge` charges them to a client's quota."""
        response = await self._controller.create_topics(request, charge=charge)
        await self.made(topic.name for topic in response.topics)
        return response

    async def create_partitions(
        self, request: CreatePartitionsRequest, charge: Charge = unlimited
    ) -> CreatePartitionsResponse:
        """Creates partitions, and returns once clients can write to them."""
        response = await self._controller.create_partitions(request, charge)
        await self.made(topic.name for topic in response.results)
        return response

    async def made(self, names: Iterable[str]) -> None:
        """Returns once the queued logs of these topics exist."""
        await self.new_logs.made(names)
