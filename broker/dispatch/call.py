"""The argument of a handler: a request, and the parts of the process that its answer needs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress
from struct import Struct
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

from broker.dispatch.api import Api
from broker.dispatch.host import Host
from broker.request.authorisation import CLUSTER_NAME, Requirement
from broker.request.context import ClientConnection, Context
from broker.request.turns import Turns
from coordinator.cluster.controller import Asker
from coordinator.cluster.topics.topic import Topic
from protocol.errors import ProtocolError
from protocol.types import Uuid

if TYPE_CHECKING:
    from broker.dispatch.broker import Broker  # a controller without a broker needs none of it

Request = TypeVar("Request")

THROTTLE_TIME: Final = Struct(">i")

MAX_ANSWER_ITEMS: Final = 1 << 20
"""Maximum number of items in an answer; each is an object of some hundred bytes. Enough for the configs of twenty
thousand topics, or the offsets of a million partitions."""

MAX_ITEMS_ON_LOOP: Final = 1000
"""Maximum number of counted items of an answer that is encoded on the event loop: each takes some microseconds."""


class Call(Generic[Request]):
    """One request in progress: its message, its context, and the process that received it."""

    __slots__ = ("_sender", "_turns", "_unknown_ids", "api", "context", "host", "request", "version")

    def __init__(self, api: Api, context: Context, host: Host, request: Request) -> None:
        self.api = api
        self.context = context
        self.version = context.version
        self.host = host
        self.request = request
        self._sender: Asker | None = None
        self._turns: Turns | None = None
        self._unknown_ids: set[Uuid] = set()

    @property
    def broker(self) -> Broker:
        """The broker that received the request. Rows that controllers have too use only `host`."""
        return cast("Broker", self.host)

    @property
    def sender(self) -> Asker:
        """The client as the controller in this process sees it, with what the steps before the controller know."""
        if self._sender is None:
            self._sender = Asker(self.context.requester, self.version, self.host.broker_id)
        return self._sender

    @sender.setter
    def sender(self, sender: Asker) -> None:
        self._sender = sender

    async def by_controller(self) -> object:
        """Returns the response of the controller in this process, once this broker has applied the changes."""
        response: object = await self.host.controller.submit(self.request, self.api.response, self.sender)
        await self.host.new_logs.changes.over()
        return response

    async def forwarded(self) -> object:
        """Returns the encoded body of the response of a controller in another process. If it throttles the client, this
        broker pauses the connection."""
        forwarding, context = self.host.forwarding, self.context
        assert forwarding is not None
        body = await forwarding.forward(self.request, self.version, context.requester)
        if self.api.begins_with_throttle_time(self.version):
            (context.throttle_ms,) = THROTTLE_TIME.unpack_from(body)
        return body

    @property
    def client_id(self) -> str | None:
        return self.context.client_id

    @property
    def connection(self) -> ClientConnection:
        return self.context.connection

    def may(self, requirement: Requirement, name: str = CLUSTER_NAME, *, quiet: bool = False) -> bool:
        """True if the client may do the operation on the resource."""
        authorizer, (operation, resource) = self.host.authorizer, requirement
        return authorizer is None or authorizer.allows(self.context, operation, resource, name, quiet=quiet)

    async def permitted(self, requirement: Requirement, names: Iterable[str], *, quiet: bool = False) -> set[str]:
        """Returns the names of the resources on which the client may do the operation."""
        if self.host.authorizer is None:
            return set(names)
        turns, seen = self.turns(), dict[str, None]()
        await turns.map(seen.setdefault, list(names))  # hashing 200,000 names takes 40 ms
        distinct = list(seen)
        verdicts = await turns.map(lambda name: self.may(requirement, name, quiet=quiet), distinct)
        return set(compress(distinct, verdicts))

    def topic_by_id(self, topic_id: Uuid) -> Topic | None:
        """Returns the topic with this id. An id that was unknown stays unknown for the whole request: otherwise a topic
        that is created between two turns would be served without having been authorized."""
        topic = None if topic_id in self._unknown_ids else self.host.image.topic_by_id(topic_id)
        if topic is None:
            self._unknown_ids.add(topic_id)
        return topic

    def announce(self, items: int) -> None:
        """Counts items of the answer, so that a thread encodes an answer with many of them."""
        self.context.answer_items += items
        if self.context.answer_items > MAX_ITEMS_ON_LOOP:
            self.context.is_large = True

    def count(self, items: int) -> None:
        """Counts items of the answer: members, offsets, configs. Raises ProtocolError if there are too many: a small
        request may name a large object a hundred thousand times."""
        self.announce(items)
        if self.context.answer_items > MAX_ANSWER_ITEMS:
            reason = f"its answer has more than {MAX_ANSWER_ITEMS} items; request less at once"
            raise ProtocolError(f"{self.api.key.name} v{self.version}: {reason}", offset=0)

    def turns(self) -> Turns:
        """Returns the turns of this request, for work on many entries."""
        if self._turns is None:
            self._turns = Turns(self.host.clock)
        return self._turns

    @property
    def now_ms(self) -> int:
        return self.host.clock.now_ms()
