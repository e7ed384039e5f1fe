"""How handlers ask a coordinator: on whose behalf, and with an answer that may be there at once or later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from broker.dispatch import Call
from coordinator.group.state import Client
from protocol.errors import ErrorCode, KafkaError

_new: Final = tuple.__new__  # a NamedTuple's own constructor costs three times as much

A = TypeVar("A")
B = TypeVar("B")
Q = TypeVar("Q")


def client_of(call: Call[Q]) -> Client:
    """Who asks, as groups note it of their members: Java prints addresses with a slash."""
    return _new(Client, (call.version, call.client_id or "", f"/{call.connection.ip}"))


def check_group_id(group_id: str) -> None:
    """Members have no group without a name; consumers that only keep offsets may. Raises INVALID_GROUP_ID."""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)


def answer(
    asked: asyncio.Future[A], respond: Callable[[A], B], refuse: Callable[[KafkaError], B]
) -> B | Coroutine[Any, Any, B]:
    """The response, at once where the answer is there already."""
    if not asked.done():
        return later(asked, respond, refuse)
    error = asked.exception()
    if isinstance(error, KafkaError):
        return refuse(error)
    return respond(asked.result())


async def later(asked: asyncio.Future[A], respond: Callable[[A], B], refuse: Callable[[KafkaError], B]) -> B:
    try:
        return respond(await asked)
    except KafkaError as error:
        return refuse(error)
