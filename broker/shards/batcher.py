"""Batches requests to other brokers, with one in flight to each: items that come meanwhile go with the next request.

Source: the queues of TransactionMarkerChannelManager, AddPartitionsToTxnManager and PersisterStateManager.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from broker.logging import get_logger
from client.errors import PeerError, RequestTimedOut, UnsupportedVersion
from protocol.errors import ErrorCode, KafkaError, ProtocolError

Destination = TypeVar("Destination", bound=Hashable)
Item = TypeVar("Item")
Answer = TypeVar("Answer")

MAX_ITEMS: Final = 1_000
"""Maximum number of items in a request. As many take some milliseconds of a broker's event loop."""

STOPPING: Final = KafkaError(ErrorCode.NETWORK_EXCEPTION, "this broker is stopping")

Send: TypeAlias = "Callable[[Destination, Sequence[Item]], Awaitable[Sequence[Answer]]]"
"""Sends one request with these items, and returns each item's answer, in order. Raises PeerError, ProtocolError, and
KafkaError if one error answers all items."""

logger = get_logger(__name__)


class Submitted(NamedTuple, Generic[Item, Answer]):
    """An item that waits to be sent, or for its answer."""

    key: Hashable
    item: Item
    answer: asyncio.Future[Answer]


class Batcher(Generic[Destination, Item, Answer]):
    """Items by destination, in order of arrival. A request has at most one item per key, which identifies its
    answer."""

    def __init__(self, purpose: str, send: Send[Destination, Item, Answer]) -> None:
        """`purpose` names the requests in the log."""
        self._purpose = purpose
        self._send = send
        self._waiting: dict[Destination, list[Submitted[Item, Answer]]] = {}
        self._under_way: dict[Destination, asyncio.Task[None]] = {}
        self._problems: dict[Destination, str] = {}
        """The last problem of each failing destination: it is logged once, not at every try."""

    def submit(self, destination: Destination, key: Hashable, item: Item) -> asyncio.Future[Answer]:
        """Returns the future of the item's answer, which raises KafkaError if there is none: NETWORK_EXCEPTION,
        REQUEST_TIMED_OUT, UNSUPPORTED_VERSION, or the one error that answers all items. An item whose future is
        cancelled before it is sent is dropped."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(destination, []).append(Submitted(key, item, answer))
        if destination not in self._under_way:
            task = asyncio.get_running_loop().create_task(self._run(destination))
            self._under_way[destination] = task
        return answer

    def stop(self) -> None:
        """Fails all items that wait or are in flight with NETWORK_EXCEPTION."""
        for task in self._under_way.values():
            task.cancel()
        for waiting in self._waiting.values():
            fail_all(waiting, STOPPING)
            waiting.clear()

    async def _run(self, destination: Destination) -> None:
        """Sends requests until no item waits."""
        try:
            while batch := self._next(destination):
                await self._settle(destination, batch)
        finally:
            del self._under_way[destination]
            if not self._waiting.get(destination):
                self._waiting.pop(destination, None)

    def _next(self, destination: Destination) -> list[Submitted[Item, Answer]]:
        """Removes and returns the items of the next request."""
        batch: dict[Hashable, Submitted[Item, Answer]] = {}
        left: list[Submitted[Item, Answer]] = []
        for waiting in self._waiting.get(destination, ()):
            if waiting.answer.done():
                continue
            if waiting.key in batch or len(batch) == MAX_ITEMS:
                left.append(waiting)
            else:
                batch[waiting.key] = waiting
        self._waiting[destination] = left
        return [*batch.values()]

    async def _settle(self, destination: Destination, batch: Sequence[Submitted[Item, Answer]]) -> None:
        try:
            answers = await self._send(destination, [waiting.item for waiting in batch])
            answered = list(zip(batch, answers, strict=True))
        except asyncio.CancelledError:
            fail_all(batch, STOPPING)
            raise
        except Exception as error:
            fail_all(batch, self._failed(destination, error))
            return
        self._problems.pop(destination, None)
        for waiting, answer in answered:
            if not waiting.answer.done():
                waiting.answer.set_result(answer)

    def _failed(self, destination: Destination, error: Exception) -> KafkaError:
        rejection = as_kafka_error(error)
        if rejection.code is ErrorCode.UNKNOWN_SERVER_ERROR:
            logger.error(
                "a request to another broker failed", purpose=self._purpose, to=str(destination), exc_info=error
            )
        elif self._problems.get(destination) != str(error):
            self._problems[destination] = str(error)
            logger.warning(
                "another broker did not answer", purpose=self._purpose, to=str(destination), reason=str(error)
            )
        return rejection


def as_kafka_error(error: Exception) -> KafkaError:
    """Returns the error of a request without an answer, with the code that Kafka's own clients use."""
    if isinstance(error, KafkaError):
        return error
    if isinstance(error, RequestTimedOut):
        return KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error))
    if isinstance(error, UnsupportedVersion):
        return KafkaError(ErrorCode.UNSUPPORTED_VERSION, str(error))
    if isinstance(error, PeerError | ProtocolError):
        return KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error))
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, repr(error))


def fail_all(batch: Iterable[Submitted[Item, Answer]], error: KafkaError) -> None:
    """Fails the items that aren't answered yet."""
    for waiting in batch:
        if not waiting.answer.done():
            waiting.answer.set_exception(error)
            waiting.answer.exception()  # the coroutine that waited for it may be gone
