"""The argument of a handler: one request, and all that its answer needs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from broker.exchange.authorisation import CLUSTER_NAME, Requirement
from broker.exchange.context import ClientConnection, Context
from broker.exchange.turns import Turns
from broker.requests.api import Api
from broker.requests.host import Host
from protocol.errors import ProtocolError

if TYPE_CHECKING:
    from broker.requests.broker import Broker  # of which a controller without a broker needs nothing

Request = TypeVar("Request")

MAX_ANSWER_ITEMS: Final = 1 << 20
"""The most items of an answer whose request names them, each some hundred bytes of objects: the configs of twenty
thousand topics, the offsets of a million partitions."""


class HostCall(Generic[Request]):
    """One request that is being handled: its message, its context, and the process that got it."""

    __slots__ = ("answer_items", "api", "context", "host", "request", "version")

    def __init__(self, api: Api, context: Context, host: Host, request: Request) -> None:
        self.api = api
        self.context = context
        self.version = context.version
        self.host = host
        self.request = request
        self.answer_items = 0

    @property
    def client_id(self) -> str | None:
        return self.context.client_id

    @property
    def connection(self) -> ClientConnection:
        return self.context.connection

    def may(self, requirement: Requirement, name: str = CLUSTER_NAME, *, quiet: bool = False) -> bool:
        """True where the client may do the operation on the resource."""
        operation, resource = requirement
        return self.host.authorizer.allows(self.context, operation, resource, name, quiet=quiet)

    async def permitted(self, requirement: Requirement, names: Iterable[str], *, quiet: bool = False) -> set[str]:
        """Returns the names of the resources on which the client may do the operation."""
        distinct = list(dict.fromkeys(names))
        verdicts = await self.turns().map(lambda name: self.may(requirement, name, quiet=quiet), distinct)
        return set(compress(distinct, verdicts))

    def count(self, items: int) -> None:
        """Counts items of the answer: members, offsets, configs. Raises ProtocolError once there are too many: a
        request may name one large thing a hundred thousand times, in a few bytes each."""
        self.answer_items += items
        if self.answer_items > MAX_ANSWER_ITEMS:
            reason = f"its answer has more than {MAX_ANSWER_ITEMS} items; ask for less at once"
            raise ProtocolError(f"{self.api.key.name} v{self.version}: {reason}", offset=0)

    def turns(self) -> Turns:
        """Returns turns for a request that goes over many entries."""
        return Turns(self.host.clock)

    @property
    def now_ms(self) -> int:
        return self.host.clock.now_ms()


class Call(HostCall[Request]):
    """A request to a broker."""

    __slots__ = ("broker",)

    def __init__(self, api: Api, context: Context, broker: Broker, request: Request) -> None:
        super().__init__(api, context, broker, request)
        self.broker = broker
