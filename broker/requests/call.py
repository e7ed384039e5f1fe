"""The argument of a handler: one request, and all that it takes to answer it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from broker.exchange.authorisation import Name, Operation, Resource, split_authorised
from broker.exchange.context import ClientConnection, Context
from broker.requests.api import Api
from broker.requests.broker import Broker

Request = TypeVar("Request")


class Call(Generic[Request]):
    """One request at work: its message, its context, and the broker."""

    __slots__ = ("api", "broker", "context", "request", "version")

    def __init__(self, api: Api, context: Context, broker: Broker, request: Request) -> None:
        self.api = api
        self.context = context
        self.version = context.version
        self.broker = broker
        self.request = request

    @property
    def client_id(self) -> str | None:
        return self.context.client_id

    @property
    def connection(self) -> ClientConnection:
        return self.context.connection

    def authorise(
        self, operation: Operation, resource: Resource, names: Iterable[Name]
    ) -> tuple[list[Name], list[Name]]:
        """Returns the names that the client may access, and those that it may not, in their order."""
        return split_authorised(self.broker.authorizer, self.context, operation, resource, names)

    @property
    def now_ms(self) -> int:
        return self.broker.clock.now_ms()
