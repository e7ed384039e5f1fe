"""From a frame to an answer: header, version check, decode, handler, error mapping, encode.

A handler that need not wait runs inside the socket's callback: one request, no task.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from librt.strings import read_i16_be, read_i32_be

from broker.clock import Clock
from broker.exchange.authorisation import CLUSTER_NAME, Requirement
from broker.exchange.bounded_answer import SMALL_REQUEST_BYTES, BoundedAnswer
from broker.exchange.context import ClientConnection, Context
from broker.exchange.eager import Waiting, begin
from broker.exchange.log_limiter import LogLimiter
from broker.exchange.pending import Answer, ParkedCall, Running, answer_later
from broker.logging import get_logger
from broker.requests.api import Api, Guard, Handle
from broker.requests.call import Call, HostCall
from broker.requests.host import Host
from broker.requests.parts import in_parts
from broker.workers import Workers
from protocol.api_key import ApiKey
from protocol.codec import MALFORMED, Decoder, Encoder, bounded_decoder, decoder, encoder
from protocol.connection import response_frame
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.primitives import read_uvarint
from protocol.schema import ANY_VERSION, fields_of, identity
from protocol.types import Buffer

HEADER_BYTES: Final = 10
"""API key, API version, correlation id, length of the client id: the start of every request header since v1."""

OLDEST: Final = 0
"""The version in which ApiVersions answers requests in a version that is not served."""

FRONT_BYTES: Final = 448
"""How much of a frame is copied to `bytes`, out of which compiled code reads integers without a call, and without
objects. Enough for all but the records of the usual Produce, and so few that they come from Python's own pools."""

MAX_HEADER_TAGS: Final = 100
"""The most tags of a request's header. No client sends one; a hundred megabytes of empty tags would take seconds to
skip."""

MAX_OTHER_REQUEST_BYTES: Final = 16 * 1024 * 1024
"""The largest request other than Produce: its strings and bytes are copied. The largest that clients send have four
megabytes (a Fetch of a hundred thousand partitions); groups as large as this do not fit into the records that store
them. Records are never taken apart, so that socket.request.max.bytes alone limits them."""

MAX_REQUEST_ITEMS: Final = 256 * 1024
"""The most items of arrays, and tags, of a request, nested ones among them. Each becomes an object, and most an object
of the answer too, though it may be a byte or two of the frame: sixteen megabytes of empty topics took the event loop
half a minute, and gigabytes. A hundred thousand partitions, each in a topic of its own, have two hundred thousand
items; a cluster of Apache Kafka has about as many partitions at most. The items of a frame of no more bytes are not
counted."""

WITHOUT_ANSWER: Final = 0
"""The acks of a Produce whose client expects no answer: a failure closes its connection."""

MIN_LONG_TEXT_BYTES: Final = 32768 // 3
"""Bytes of a request in which a text may be that, read as Java reads it, has more bytes than an int16 counts."""

LARGE_REQUEST_BYTES: Final = 4 * 1024
"""A request of more bytes may have so many entries that it is answered in parts: a thousand, of four bytes each."""

MAX_BYTES_ON_LOOP: Final = 16 * 1024
"""The largest request, other than Produce, that is decoded on the event loop, and its answer encoded: fifty
milliseconds at most. A thread decodes larger ones; a hundred thousand entries take it a second."""

log: Final = get_logger("broker.requests.dispatch")


class Route:
    """An API with its codecs at hand, compiled at the first request of each version."""

    __slots__ = (
        "api",
        "bounded_decoders",
        "clock",
        "decoders",
        "encoders",
        "faults",
        "first",
        "flexible",
        "handle",
        "key",
        "last",
        "of_cluster",
        "parse",
        "parse_from",
        "serve",
        "threads",
    )

    def __init__(
        self, api: Api, faults: LogLimiter, clock: Clock, threads: Workers, guard: Guard | None = None
    ) -> None:
        """`guard` stands before the handler where there is an authorizer; `threads` decode and encode what is large."""
        self.api = api
        self.threads = threads
        self.clock = clock
        self.faults = faults
        self.key = api.key
        self.handle: Handle = api.handle if guard is None else guarded(guard, api.handle)
        self.of_cluster = api.requires.of_cluster
        self.first, self.last = api.versions
        wire = api.wire
        self.parse = None if wire is None else wire.parse
        self.serve = None if wire is None else wire.serve
        self.parse_from = self.last + 1 if wire is None else wire.first_version
        flexible = identity(api.request).flexible
        self.flexible = flexible.first if flexible.last >= flexible.first else ANY_VERSION
        self.decoders: dict[int, Decoder] = {}
        self.bounded_decoders: dict[int, Decoder] = {}
        """Decoders that count items, for frames large enough to have more than a request may have."""
        self.encoders: dict[int, Encoder] = {}

    def decoder(self, version: int, size_bytes: int) -> Decoder:
        """Returns the decoder for a frame of that size."""
        if size_bytes > MAX_REQUEST_ITEMS:
            return self.bounded_decoder(version)
        compiled = self.decoders.get(version)
        if compiled is None:
            compiled = self.decoders[version] = decoder(self.api.request, version)
        return compiled

    def bounded_decoder(self, version: int) -> Decoder:
        """Returns the decoder that raises ProtocolError beyond MAX_REQUEST_ITEMS."""
        compiled = self.bounded_decoders.get(version)
        if compiled is None:
            compiled = self.bounded_decoders[version] = bounded_decoder(self.api.request, version, MAX_REQUEST_ITEMS)
        return compiled

    def decode(self, version: int, frame: memoryview, position: int) -> object:
        """Returns the request whose body begins at the position. Raises ProtocolError."""
        request: object
        try:
            request, _ = self.decoder(version, len(frame))(frame, position, len(frame))
        except ProtocolError as error:
            raise ProtocolError(f"{self.key.name} v{version}: {error.message}", offset=error.offset) from error
        except MALFORMED as malformed:
            raise ProtocolError(f"{self.key.name} v{version}: {malformed}", offset=position) from malformed
        return request

    def handled(self, call: HostCall[object], size_bytes: int) -> Coroutine[object, object, object]:
        """Returns the coroutine of the handler; a large request's answers it in parts if its API can."""
        if size_bytes > LARGE_REQUEST_BYTES and self.api.entries and not self.api.is_forwarded:
            return in_parts(call, self.handle, self.api.entries)
        return self.handle(call)

    def encode(self, context: Context, response: object) -> list[Buffer]:
        """Returns the frame of a response; a response that is a frame already as it is."""
        if isinstance(response, list):
            return response
        version = context.version
        compiled = self.encoders.get(version)
        if compiled is None:
            compiled = self.encoders[version] = encoder(self.api.response, version)
        parts: list[Buffer] = []
        if isinstance(response, bytes):
            parts.append(response)
        elif context.size_bytes <= SMALL_REQUEST_BYTES:
            compiled(response, parts.append)
        else:
            self._encode_bounded(context, compiled, response, parts)
        has_flexible_header = version >= self.flexible and self.key != ApiKey.API_VERSIONS
        return response_frame(context.correlation_id, has_flexible_header, parts)

    async def encode_later(self, context: Context, response: object) -> list[Buffer]:
        """Returns the frame of a response; a thread makes it if it is large."""
        if not context.is_large:
            return self.encode(context, response)
        return await self.threads.call(partial(self.encode, context, response))

    def _encode_bounded(self, context: Context, compiled: Encoder, response: object, parts: list[Buffer]) -> None:
        """Encodes the answer of a request that is not small. Raises ProtocolError where it is too large, or repeats a
        text that the version cannot carry: bytes that are no UTF-8 are answered as three times as many."""
        try:
            compiled(response, BoundedAnswer(self.key, context.version, parts).append)
        except struct.error as error:
            if context.size_bytes < MIN_LONG_TEXT_BYTES:
                raise  # then it is no text of the client's
            reason = "a text that it repeats is too long for an answer of this version"
            raise ProtocolError(f"{self.key.name} v{context.version}: {reason}", offset=0) from error

    def _log_fault(self, context: Context, error: Exception) -> None:
        """Logs a fault of ours with its trace, but not each time, where a client repeats the request."""
        if self.faults.allows(context.connection.ip):
            name, version = self.api.key.name, context.version
            log.error("request failed", api=name, version=version, peer=context.peer, exc_info=error)

    def failed(self, context: Context, request: object, error: Exception) -> object:
        """Returns the response that refuses a request that raised. Raises ProtocolError, which closes the connection,
        for a Produce with acks=0, which has no response."""
        from broker.requests.refusal import refusal  # few requests are refused as a whole

        if request is None:
            return self.failure(context, error)
        if getattr(request, "acks", None) == WITHOUT_ANSWER:
            raise ProtocolError(f"{self.key.name} v{context.version} failed: {error!r}") from error
        return refusal(self.api, request, context.version, self._as_kafka_error(context, error))

    def failure(self, context: Context, error: Exception) -> object:
        """Returns the response to a parked request that raised, of which nothing is left to repeat: its top-level
        error. Raises ProtocolError, which closes the connection, if its version has none."""
        fields = {field.name: field.wire for field in fields_of(self.api.response)}
        if "error_code" not in fields or context.version not in fields["error_code"].versions:
            raise ProtocolError(f"{self.key.name} v{context.version} failed: {error!r}") from error
        return self.api.response(error_code=int(self._as_kafka_error(context, error).code))

    def _as_kafka_error(self, context: Context, error: Exception) -> KafkaError:
        """Returns the error that the client is answered with; logs a fault of ours."""
        if isinstance(error, KafkaError):
            return error
        self._log_fault(context, error)
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def guarded(guard: Guard, handle: Handle) -> Handle:
    """Returns the handler with its guard before it."""
    return lambda call: guard(call, handle)


class Dispatcher:
    """Answers frames by the table of APIs."""

    def __init__(
        self,
        host: Host,
        new_call: Callable[[Api, Context, Any, object], HostCall[object]] = Call,
    ) -> None:
        """`new_call` makes what the handlers of the host's table are called with."""
        self.host = host
        self._new_call = new_call
        self.routes: dict[int, Route] = {}
        """The routes of the APIs that had a request."""

    def answer(self, connection: ClientConnection, frame: memoryview) -> Answer:
        """Returns the answer to one request frame. Raises ProtocolError, which closes the connection."""
        key = version = -1
        position = 0
        try:
            front = bytes(frame[:FRONT_BYTES])
            key = read_i16_be(front, 0)
            version = read_i16_be(front, 2)
            correlation_id: int = read_i32_be(front, 4)
            client_id_length: int = read_i16_be(front, 8)
            check_client_id(client_id_length, len(frame) - HEADER_BYTES)
            route = self.routes.get(key) or self._route(key)
            if route is None or not route.first <= version <= route.last:
                context = Context(connection, key, OLDEST, correlation_id, None, len(frame))
                return context.finish(self.unsupported(route, context, version))
            position = HEADER_BYTES
            client_id = None
            if client_id_length >= 0:
                position += client_id_length
                client_id = connection.client_id(bytes(frame[HEADER_BYTES:position]))
            if version >= route.flexible:
                position = skip_tags(frame, position) if frame[position] else position + 1
        except MALFORMED as malformed:
            if len(frame) < HEADER_BYTES:
                raise ProtocolError(f"a request has a header of {HEADER_BYTES} bytes at least", offset=0) from malformed
            raise ProtocolError(f"{api_name(key)} v{version}: {malformed}", offset=position) from malformed
        context = Context(connection, key, version, correlation_id, client_id, len(frame))
        if version >= route.parse_from:
            parse, serve = route.parse, route.serve
            assert parse is not None
            assert serve is not None
            request = parse(self.host, context, frame, front, position)
            if request is not None:
                try:
                    response = serve(self.host, context, request)
                except ProtocolError:
                    raise
                except Exception as fault:
                    response = route.failed(context, route.decode(version, frame, position), fault)
                return as_answer(route, context, None, response)
        return self.handle(route, context, position, frame)

    def _route(self, key: int) -> Route | None:
        api = self.host.apis.find(key)
        if api is None:
            return None
        route = self.routes[key] = Route(
            api, self.host.faults, self.host.clock, self.host.codec_threads, self._guard(api)
        )
        return route

    def _guard(self, api: Api) -> Guard | None:
        guards = self.host.guards
        return None if guards is None or api.is_forwarded else guards.find(api.key)

    def handle(self, route: Route, context: Context, position: int, frame: memoryview) -> Answer:
        """Takes a request the general way: decodes it, calls its handler, encodes the response."""
        version = context.version
        if len(frame) > MAX_OTHER_REQUEST_BYTES and route.key is not ApiKey.PRODUCE:
            reason = f"a request of {len(frame)} bytes: {MAX_OTHER_REQUEST_BYTES} are the most, but for records"
            raise ProtocolError(f"{route.key.name} v{version}: {reason}", offset=0)
        if len(frame) > MAX_BYTES_ON_LOOP and route.key is not ApiKey.PRODUCE:
            context.parked_ns = route.clock.monotonic_ns()
            return Running(self._answer_large(route, context, position, memoryview(bytes(frame))))
        request = route.decode(version, frame, position)
        call = self._new_call(route.api, context, self.host, request)
        try:
            if route.of_cluster is not None:
                self.check_cluster(context, route.of_cluster)
            response = begin(route.handled(call, len(frame)))
        except ProtocolError:
            raise
        except Exception as fault:
            response = route.failed(context, request, fault)
        return as_answer(route, context, request, response)

    async def _answer_large(self, route: Route, context: Context, position: int, frame: memoryview) -> Answer:
        """Returns the answer to a large request, which a thread decodes, and whose answer it encodes."""
        context.is_large = True
        request = await route.threads.call(partial(route.decode, context.version, frame, position))
        call = self._new_call(route.api, context, self.host, request)
        try:
            if route.of_cluster is not None:
                self.check_cluster(context, route.of_cluster)
            response = await route.handled(call, len(frame))
        except ProtocolError:
            raise
        except Exception as fault:
            response = route.failed(context, request, fault)
        if isinstance(response, ParkedCall):
            response.bind(route)
            return response
        return context.finish(None if response is None else await route.encode_later(context, response))

    def check_cluster(self, context: Context, required: Requirement) -> None:
        """Raises CLUSTER_AUTHORIZATION_FAILED where the client is not authorised for this operation on the cluster."""
        if not self.host.authorizer.allows(context, *required, CLUSTER_NAME):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    def unsupported(self, route: Route | None, context: Context, version: int) -> list[Buffer]:
        """Returns the answer to a version that is not served: ApiVersions has one, by which newer clients learn what is
        served (KIP-511). Raises ProtocolError for any other API."""
        if route is None or route.api.unsupported is None:
            raise ProtocolError(f"{api_name(context.key)} v{version} is not served; see ApiVersions", offset=0)
        return route.encode(context, route.api.unsupported(self.host.apis))


def as_answer(route: Route, context: Context, request: object, response: object) -> Answer:
    """Returns the answer that a handler's result makes: the response's frame, or a parked or running request that will
    have one. The request is None if a short cut read it."""
    if isinstance(response, list):
        return context.finish(response)
    if isinstance(response, ParkedCall):
        context.parked_ns = route.clock.monotonic_ns()
        response.bind(route)
        return response
    if isinstance(response, Waiting):
        context.parked_ns = route.clock.monotonic_ns()
        return Running(answer_later(route, context, request, response))
    if isinstance(response, Running):
        context.parked_ns = route.clock.monotonic_ns()
        return response
    return context.finish(None if response is None else route.encode(context, response))


def check_client_id(size: int, left: int) -> None:
    """Raises ProtocolError where the frame ends within its client id, which an empty body would not show."""
    if size > left:
        raise ProtocolError(f"a client id of {size} does not fit in the {left} bytes that are left", offset=8)


def skip_tags(frame: memoryview, position: int) -> int:
    """Returns the position behind a request header's tags, none of which a broker reads."""
    count, position = read_uvarint(frame, position)
    if count > MAX_HEADER_TAGS:
        raise ProtocolError(f"a request header of {count} tags: {MAX_HEADER_TAGS} are the most", offset=position)
    for _ in range(count):
        _, position = read_uvarint(frame, position)
        size, position = read_uvarint(frame, position)
        position += size
    return position


def api_name(key: int) -> str:
    """Returns the name of an API for a message, also for a key that no API has."""
    return ApiKey(key).name if key in ApiKey._value2member_map_ else f"API {key}"
