"""One API as it is served: its codecs, its handler with the steps before it, the frame of its response, and the
response that rejects a request.
"""

from __future__ import annotations

import struct
from collections.abc import Coroutine
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, cast

from broker.dispatch.api import AnsweredBy, Api, Handle, before
from broker.dispatch.call import THROTTLE_TIME, Call
from broker.dispatch.host import Host
from broker.dispatch.parts import in_parts
from broker.dispatch.rejection import rejection
from broker.logging import get_logger
from broker.request.bounded_answer import SMALL_REQUEST_BYTES, BoundedAnswer
from broker.request.context import AnswerBuffers, Context
from broker.workers import MAX_USUAL_ITEMS
from protocol.api_key import ApiKey
from protocol.budget import TooManyItems
from protocol.codec import MALFORMED, Decoder, Encoder, bounded_decoder, decoder, encoder
from protocol.connection import response_frame
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.schema import fields_of
from protocol.types import Buffer
from protocol.versions import ANY_VERSION

if TYPE_CHECKING:
    from broker.request.client_quotas import ClientQuotas

MAX_REQUEST_ITEMS: Final = 256 * 1024
"""Maximum number of array items and tags in a request, at all levels. Each becomes an object, and usually an object of
the answer too, though it may be only a byte or two of the frame: sixteen megabytes of empty topics took the event loop
half a minute, and gigabytes of memory. A hundred thousand partitions, each in a separate topic, are two hundred
thousand items; a cluster of Apache Kafka has at most about as many partitions. If a frame has no more bytes than this,
its items aren't counted."""

MAX_LEADER_CHANGES: Final = 5
"""Number of changes of the quorum's leader after which a request is rejected."""

WITHOUT_ANSWER: Final = 0
"""The acks of a Produce without an answer: a failure closes the connection."""

MIN_LONG_TEXT_BYTES: Final = 32768 // 3
"""Minimum size of a request with a text that may become too long for an int16 length by Java's decoding."""

LARGE_REQUEST_BYTES: Final = 4 * 1024
"""A larger request may have enough entries to be answered in parts: a thousand, of four bytes each."""

MAX_ITEMS_ON_LOOP: Final = 1000
"""Maximum number of items in a Produce that is decoded on the event loop: its size is mostly records."""

MAX_BYTES_ON_LOOP: Final = 16 * 1024
"""The largest request, other than Produce, that is decoded, and its answer encoded, on the event loop: at most fifty
milliseconds. A thread decodes larger requests, in a second for a hundred thousand entries."""

MAX_UNENCODED: Final = 8
"""Maximum number of small requests whose answers wait for a thread that encodes them. Then the event loop encodes
further ones: answers as objects have ten times the size of a frame, and only the request's size is counted."""

logger: Final = get_logger(__name__)


class Throttled(Protocol):
    """A response with the time for which its client is throttled."""

    throttle_time_ms: int


class Route:
    """An API with its codecs, which are compiled at the first request of each version."""

    __slots__ = (
        "api",
        "bounded_decoders",
        "decoders",
        "encoders",
        "few_decoders",
        "first",
        "flexible",
        "handle",
        "has_throttle_time",
        "host",
        "key",
        "last",
        "may_forward",
        "parse",
        "parse_from",
        "serve",
    )

    def __init__(self, api: Api, host: Host) -> None:
        self.api = api
        self.host = host
        self.key = api.key
        self.has_throttle_time = any(field.name == "throttle_time_ms" for field in fields_of(api.response))
        self.may_forward = api.answered_by is AnsweredBy.CONTROLLER and host.forwarding is not None
        """True if the controller may be in another process, which also authorizes the client."""
        self.handle = self._handler()
        self.first, self.last = api.versions
        wire = api.wire
        self.parse = None if wire is None else wire.parse
        self.serve = None if wire is None else wire.serve
        self.parse_from = self.last + 1 if wire is None else wire.first_version
        flexible = self.key.flexible
        self.flexible = flexible.first if flexible.last >= flexible.first else ANY_VERSION
        self.decoders: dict[int, Decoder] = {}
        self.bounded_decoders: dict[int, Decoder] = {}
        """Decoders that count items, for frames that are large enough to have too many."""
        self.few_decoders: dict[int, Decoder] = {}
        """Decoders of Produce that accept only as many items as the event loop decodes."""
        self.encoders: dict[int, Encoder] = {}

    def _handler(self) -> Handle:
        """Returns the handler, with the steps before it."""
        api, host = self.api, self.host
        handle = Call.by_controller if api.handle is None else api.handle
        handle = before(api.here, handle if api.strict_since is None else before(charge, handle))
        if host.authorizer is not None or api.authorize.always:
            handle = before(api.authorize.answer, handle)
        return before(None if api.protocol is None else check_enabled, handle)

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
        return self._decoded(self.decoder(version, len(frame)), version, frame, position)

    def decode_few(self, version: int, frame: memoryview, position: int) -> object | None:
        """Returns the request; None if it has more items than are decoded on the event loop. Raises ProtocolError."""
        compiled = self.few_decoders.get(version)
        if compiled is None:
            compiled = self.few_decoders[version] = bounded_decoder(self.api.request, version, MAX_ITEMS_ON_LOOP)
        try:
            return self._decoded(compiled, version, frame, position)
        except TooManyItems:
            return None

    def _decoded(self, compiled: Decoder, version: int, frame: memoryview, position: int) -> object:
        request: object
        kind: type[ProtocolError] = ProtocolError
        try:
            request, _ = compiled(frame, position, len(frame))
        except ProtocolError as error:
            kind, reason, offset = type(error), error.message, error.offset
        except MALFORMED as malformed:
            reason, offset = str(malformed), position
        else:
            return request
        # without the first error, whose traceback keeps the decoded objects alive
        raise kind(f"{self.key.name} v{version}: {reason}", offset=offset)

    def handled(self, call: Call[object], size_bytes: int) -> Coroutine[object, object, object]:
        """Returns the coroutine of the handler, or of forwarding the request."""
        return self._answered_anywhere(call, size_bytes) if self.may_forward else self._answered_here(call, size_bytes)

    def _answered_here(self, call: Call[object], size_bytes: int) -> Coroutine[object, object, object]:
        """Returns the coroutine of the handler, which answers a large request in parts if its API has parts."""
        if size_bytes > LARGE_REQUEST_BYTES and self.api.entries:
            return in_parts(call, self.handle, self.api.entries)
        return self.handle(call)

    async def _answered_anywhere(self, call: Call[object], size_bytes: int) -> object:
        """Has the active controller answer. A request that meets a change of the leader goes to the next leader; both
        controllers may have carried it out in part, as when a client repeats a request."""
        request, changes = call.request, 0
        while True:
            call.request = copy(request)  # a handler may remove entries that it answers itself
            try:
                if call.host.forwards:
                    return await before(self.api.here, Call.forwarded)(call)
                return await self._answered_here(call, size_bytes)
            except KafkaError as error:
                changes += 1
                if error.code is not ErrorCode.NOT_CONTROLLER or changes >= MAX_LEADER_CHANGES:
                    raise

    def encode(self, context: Context, response: object) -> AnswerBuffers:
        """Returns the frame of a response, None for none; a response that is already a frame is returned unchanged."""
        if isinstance(response, list):
            return response
        if self.host.quotas is not None:
            response = self._throttled(self.host.quotas, context, response)
        return None if response is None else self._frame(context, response)

    async def encode_later(self, context: Context, response: object) -> AnswerBuffers:
        """Returns the frame of a response, as `encode` does; a thread makes it if it is large."""
        if not context.is_large or response is None or isinstance(response, list):
            return self.encode(context, response)
        if self.host.quotas is not None:
            response = self._throttled(self.host.quotas, context, response)
        threads = self.host.codec_threads.of(context.size_bytes, context.answer_items)
        if (
            threads.unfinished >= MAX_UNENCODED
            and context.size_bytes <= MAX_BYTES_ON_LOOP
            and context.answer_items <= MAX_USUAL_ITEMS
        ):
            return self._frame(context, response)
        return await threads.call(partial(self._frame, context, response))

    def _throttled(self, quotas: ClientQuotas, context: Context, response: object) -> object:
        """Returns the response with its client's throttle time."""
        throttle_ms = quotas.record(context, is_answered=response is not None)
        if throttle_ms and isinstance(response, bytes):
            if self.api.begins_with_throttle_time(context.version):
                return THROTTLE_TIME.pack(throttle_ms) + response[THROTTLE_TIME.size :]
        elif throttle_ms and self.has_throttle_time and response is not None:
            cast(Throttled, response).throttle_time_ms = throttle_ms
        return response

    def _frame(self, context: Context, response: object) -> list[Buffer]:
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

    def _encode_bounded(self, context: Context, compiled: Encoder, response: object, parts: list[Buffer]) -> None:
        """Encodes the answer to a request that is not small. Raises ProtocolError if the answer is too large, or
        repeats a text that is too long for the version: a byte that isn't UTF-8 becomes three bytes."""
        try:
            compiled(response, BoundedAnswer(self.key, context.version, parts).append)
        except struct.error as error:
            if context.size_bytes < MIN_LONG_TEXT_BYTES:
                raise  # then the text doesn't come from the client
            reason = "its answer would repeat a text that is too long for this version"
            raise ProtocolError(f"{self.key.name} v{context.version}: {reason}", offset=0) from error

    def _log_fault(self, context: Context, error: Exception) -> None:
        """Logs a bug of the broker with its stack trace, though not each time if a client repeats the request."""
        if self.host.faults.allows(context.connection.ip):
            name, version = self.api.key.name, context.version
            logger.error("request failed", api=name, version=version, peer=context.peer, exc_info=error)

    def failed(self, context: Context, request: object, error: Exception) -> object:
        """Returns the response that rejects a request whose handler raised: only a top-level error if the request is
        None, because it was parked without its message. Raises ProtocolError, which closes the connection, if there is
        no place for the error: for a Produce with acks=0, which has no response, and without a top-level error."""
        has_place = getattr(request, "acks", None) != WITHOUT_ANSWER
        if request is None:
            fields = {field.name: field.wire for field in fields_of(self.api.response)}
            has_place = "error_code" in fields and context.version in fields["error_code"].versions
        if not has_place:
            raise ProtocolError(f"{self.key.name} v{context.version} failed: {error!r}") from error
        known = self._as_kafka_error(context, error)
        if request is None:
            return self.api.response(error_code=int(known.code))
        return rejection(self.api, request, context.version, known)

    async def failed_later(self, context: Context, request: object, error: Exception) -> object:
        """Returns the response that rejects a request, as `failed` does; a thread makes it if it is large."""
        make = partial(self.failed, context, request, error)
        threads = self.host.codec_threads.of(context.size_bytes)
        return await threads.call(make) if context.is_large else make()

    def _as_kafka_error(self, context: Context, error: Exception) -> KafkaError:
        """Returns the error for the client; logs a bug of the broker."""
        if isinstance(error, KafkaError):
            return error if self.api.translate is None else self.api.translate(error, context.version)
        self._log_fault(context, error)
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


async def check_enabled(call: Call[object], handle: Handle) -> object:
    """Performs a request if the protocol of its API is enabled. Raises UNSUPPORTED_VERSION."""
    broker, protocol = call.broker, call.api.protocol
    assert protocol is not None
    is_removed = protocol.name and protocol.name not in broker.config.group_coordinator_rebalance_protocols
    if is_removed or not broker.image.features.get(protocol.feature):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    return await handle(call)


async def charge(call: Call[object], handle: Handle) -> object:
    """Performs a request, counts its changes to the cluster for its client's quota, and returns the response with the
    throttle time. The response must have the time already, because nothing can be added to the answer to a request that
    another broker forwarded."""
    strict_since, host = call.api.strict_since, call.host
    assert strict_since is not None
    quota = host.mutation_quotas.find(call.context, is_strict=call.version >= strict_since)
    if quota is None:
        return await handle(call)
    call.sender = call.sender._replace(quota=quota)
    response: Throttled = await handle(call)
    call.context.throttle_ms = response.throttle_time_ms = quota.throttle_ms(host.clock.monotonic_ms())
    return response
