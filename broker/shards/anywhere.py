"""Requests to the leaders of partitions on other brokers: `anywhere.submit(broker_id, packing, request)`.

A caller asks `Environment.leader_elsewhere`, or its coordinator's `elsewhere`: if no other broker leads the partition,
this broker decides, without a wait. Otherwise the request goes to the leader, with one message in flight to each
recipient: requests that come meanwhile go with the next message. A `Packing` is all that a kind of request adds:

    broker/share/state_requests.py              share group state, for the persister
    broker/shards/marker_requests.py            transaction markers
    broker/shards/add_partitions_requests.py    partitions that join a transaction, or are verified
    broker/shards/high_watermarks.py            high watermarks, for the lag of share groups

Source: the queues of TransactionMarkerChannelManager, AddPartitionsToTxnManager, PersisterStateManager and
NetworkPartitionMetadataClient.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar, cast

from broker.logging import get_logger
from client.errors import ConnectionClosed, PeerError, RequestTimedOut, UnsupportedVersion
from protocol.errors import ErrorCode, KafkaError, ProtocolError

if TYPE_CHECKING:
    from broker.shards.connections import Connections

Q = TypeVar("Q")
M = TypeVar("M")
A = TypeVar("A")

MAX_REQUESTS: Final = 1_000
"""Maximum number of requests in a message. As many take some milliseconds of a broker's event loop."""

STOPPING: Final = KafkaError(ErrorCode.NETWORK_EXCEPTION, "this broker is stopping")

logger = get_logger("broker.coordinators")


def nothing(request: object) -> Hashable:
    """Returns None: all requests of the kind may go in one message."""
    return None


class Packing(NamedTuple, Generic[Q, M, A]):
    """Packs requests of one kind into messages, and unpacks the answers."""

    purpose: str
    """The connections for this kind: the end of their client id."""
    pack: Callable[[Sequence[Q]], object]
    """Returns the message with these requests."""
    response: type[M]
    unpack: Callable[[Sequence[Q], M], Sequence[A | KafkaError]]
    """Returns each request's answer, in order. Raises KafkaError if one error answers all requests."""
    key: Callable[[Q], Hashable]
    """Returns the key that identifies a request's answer: a message has at most one request per key."""
    common: Callable[[Q], Hashable] = nothing
    """Returns the part of a request that all requests of a message have in common."""


class Recipient(NamedTuple):
    """The requests to a broker that may go in one message."""

    broker_id: int
    packing: Packing[object, object, object]
    common: Hashable


class Submitted(NamedTuple):
    """A request that waits to be sent, or for its answer."""

    key: Hashable
    request: object
    answer: asyncio.Future[object]


class Anywhere:
    """The client of a broker's coordinators and share partitions."""

    def __init__(self, connect: Callable[[str], Connections]) -> None:
        """`connect` returns separate connections to the other brokers, for a purpose."""
        self._connect = connect
        self._connections: dict[str, Connections] = {}
        self._waiting: dict[Recipient, list[Submitted]] = {}
        self._under_way: dict[Recipient, asyncio.Task[None]] = {}
        self._is_stopped = False
        self._problems: dict[tuple[int, str], str] = {}
        """The last problem of each failing broker and purpose: it is logged once, not at every try."""

    def submit(self, broker_id: int, packing: Packing[Q, M, A], request: Q) -> asyncio.Future[A]:
        """Returns the future of the answer, which raises KafkaError: the broker's, or NETWORK_EXCEPTION,
        REQUEST_TIMED_OUT, UNSUPPORTED_VERSION if it didn't answer. A request whose future is cancelled before it is
        sent is dropped."""
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        untyped = cast("Packing[object, object, object]", packing)  # a recipient's requests have its packing's types
        recipient = Recipient(broker_id, untyped, packing.common(request))
        submitted = Submitted(packing.key(request), request, cast("asyncio.Future[object]", answer))
        if self._is_stopped:
            fail_all([submitted], STOPPING)
            return answer
        self._waiting.setdefault(recipient, []).append(submitted)
        if recipient not in self._under_way:
            task = asyncio.get_running_loop().create_task(self._run(recipient))
            self._under_way[recipient] = task
        return answer

    async def send(self, broker_id: int, purpose: str, request: object, response: type[M]) -> M:
        """Sends one message, once, and returns the answer. Raises PeerError, ProtocolError."""
        if self._is_stopped:
            raise ConnectionClosed(f"broker {broker_id}", "this broker is stopping")
        connections = self._connections.get(purpose)
        if connections is None:
            connections = self._connections[purpose] = self._connect(purpose)
        return await connections.send(broker_id, request, response)

    def stop(self) -> None:
        """Fails all requests that wait or are in flight with NETWORK_EXCEPTION, and closes the connections."""
        self._is_stopped = True
        for task in self._under_way.values():
            task.cancel()
        for waiting in self._waiting.values():
            fail_all(waiting, STOPPING)
            waiting.clear()
        for connections in self._connections.values():
            connections.stop()

    async def _run(self, recipient: Recipient) -> None:
        """Sends messages until no request waits."""
        try:
            while batch := self._next(recipient):
                await self._exchange(recipient, batch)
        finally:
            del self._under_way[recipient]
            if not self._waiting.get(recipient):
                self._waiting.pop(recipient, None)

    def _next(self, recipient: Recipient) -> list[Submitted]:
        """Removes and returns the requests of the next message."""
        batch: dict[Hashable, Submitted] = {}
        left: list[Submitted] = []
        for submitted in self._waiting.get(recipient, ()):
            if submitted.answer.done():
                continue
            if submitted.key in batch or len(batch) == MAX_REQUESTS:
                left.append(submitted)
            else:
                batch[submitted.key] = submitted
        self._waiting[recipient] = left
        return [*batch.values()]

    async def _exchange(self, recipient: Recipient, batch: Sequence[Submitted]) -> None:
        broker_id, packing, _ = recipient
        requests = [submitted.request for submitted in batch]
        try:
            response = await self.send(broker_id, packing.purpose, packing.pack(requests), packing.response)
            answered = list(zip(batch, packing.unpack(requests, response), strict=True))
        except asyncio.CancelledError:
            fail_all(batch, STOPPING)
            raise
        except Exception as error:
            fail_all(batch, self._failed(broker_id, packing.purpose, error))
            return
        self._problems.pop((broker_id, packing.purpose), None)
        for submitted, answer in answered:
            if isinstance(answer, KafkaError):
                fail_all([submitted], answer)
            elif not submitted.answer.done():
                submitted.answer.set_result(answer)

    def _failed(self, broker_id: int, purpose: str, error: Exception) -> KafkaError:
        rejection = as_kafka_error(error)
        if rejection.code is ErrorCode.UNKNOWN_SERVER_ERROR:
            logger.error("a request to another broker failed", purpose=purpose, to=str(broker_id), exc_info=error)
        elif self._problems.get((broker_id, purpose)) != str(error):
            self._problems[broker_id, purpose] = str(error)
            logger.warning("another broker did not answer", purpose=purpose, to=str(broker_id), reason=str(error))
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


def fail_all(batch: Iterable[Submitted], error: KafkaError) -> None:
    """Fails the requests that aren't answered yet."""
    for submitted in batch:
        if not submitted.answer.done():
            submitted.answer.set_exception(error)
            submitted.answer.exception()  # the coroutine that waited for it may be gone
