"""From a frame to an answer: reads the header, finds the API's route, decodes the request and calls the handler.

A handler that needn't wait runs inside the socket's callback, without a task.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import Final

from librt.strings import read_i16_be, read_i32_be

from broker.dispatch.call import Call
from broker.dispatch.header import HEADER_BYTES, check_client_id, skip_tags
from broker.dispatch.host import Host
from broker.dispatch.route import MAX_BYTES_ON_LOOP, Route
from broker.request.context import AnswerBuffers, ClientConnection, Context
from broker.request.eager import Waiting, begin
from broker.request.pending import Answer, ParkedCall, Running, answer_later
from protocol.api_key import ApiKey
from protocol.codec import MALFORMED
from protocol.errors import ProtocolError

OLDEST: Final = 0
"""The version in which ApiVersions answers requests in a version that is not served."""

FRONT_BYTES: Final = 448
"""Bytes of a frame that are copied to `bytes`, from which compiled code reads integers without a call or an object.
Enough for a usual Produce without its records, and few enough to come from Python's own memory pools."""

MAX_OTHER_REQUEST_BYTES: Final = 16 * 1024 * 1024
"""The largest request other than Produce: its strings and bytes are copied. Clients send at most four megabytes (a
Fetch of a hundred thousand partitions); a group as large as this limit doesn't fit into the record that stores it.
Records are never copied, so only socket.request.max.bytes limits them."""


class Dispatcher:
    """Answers frames by the table of APIs."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.routes: dict[int, Route] = {}
        """The routes of the APIs that have had a request."""

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
        route = self.routes[key] = Route(api, self.host)
        return route

    def handle(self, route: Route, context: Context, position: int, frame: memoryview) -> Answer:
        """Handles a request without a short cut: decodes it, calls its handler, encodes the response."""
        version = context.version
        if len(frame) > MAX_OTHER_REQUEST_BYTES and route.key is not ApiKey.PRODUCE:
            reason = f"a request of {len(frame)} bytes; without records at most {MAX_OTHER_REQUEST_BYTES} are allowed"
            raise ProtocolError(f"{route.key.name} v{version}: {reason}", offset=0)
        request: object | None = None
        if len(frame) <= MAX_BYTES_ON_LOOP:
            request = route.decode(version, frame, position)
        elif route.key is ApiKey.PRODUCE:
            request = route.decode_few(version, frame, position)
        if request is None:
            context.parked_ns = route.host.clock.monotonic_ns()
            copy = bytearray(frame) if route.key is ApiKey.PRODUCE else bytes(frame)  # an append stamps its records
            work = self._answer_large(route, context, position, memoryview(copy))
            to_its_end = route.api.to_its_end
            return Running(work if to_its_end is None else awaited(to_its_end(self.host, work)))
        call = Call(route.api, context, self.host, request)
        try:
            response = begin(route.handled(call, len(frame)))
        except ProtocolError:
            raise
        except Exception as fault:
            response = route.failed(context, request, fault)
        return as_answer(route, context, request, response)

    async def _answer_large(self, route: Route, context: Context, position: int, frame: memoryview) -> Answer:
        """Returns the answer to a large request; a thread decodes the request and encodes the answer."""
        context.is_large = True
        threads = self.host.codec_threads.of(len(frame))
        request = await threads.call(partial(route.decode, context.version, frame, position))
        call = Call(route.api, context, self.host, request)
        return await answer_later(route, context, request, route.handled(call, len(frame)))

    def unsupported(self, route: Route | None, context: Context, version: int) -> AnswerBuffers:
        """Returns the answer to an unsupported version: ApiVersions has such an answer, from which newer clients learn
        the supported versions (KIP-511). Raises ProtocolError for any other API."""
        if route is None or route.api.unsupported is None:
            raise ProtocolError(f"{api_name(context.key)} v{version} is not served; see ApiVersions", offset=0)
        return route.encode(context, route.api.unsupported(self.host.apis))


async def awaited(answer: Awaitable[Answer]) -> Answer:
    """Returns the answer of work that has already begun."""
    return await answer


def as_answer(route: Route, context: Context, request: object, response: object) -> Answer:
    """Returns the answer for a handler's result: the response's frame, or a parked or running request that will have
    the answer. The request is None if a short cut read it."""
    if isinstance(response, list):
        return context.finish(response)
    if isinstance(response, ParkedCall):
        context.parked_ns = route.host.clock.monotonic_ns()
        response.bind(route)
        return response
    if isinstance(response, Waiting):
        context.parked_ns = route.host.clock.monotonic_ns()
        return Running(answer_later(route, context, request, response))
    if context.is_large and response is not None:
        context.parked_ns = route.host.clock.monotonic_ns()
        encoded = begin(route.encode_later(context, response))
        return Running(finished_later(context, encoded)) if isinstance(encoded, Waiting) else context.finish(encoded)
    return context.finish(route.encode(context, response))


async def finished_later(context: Context, encoded: Awaitable[AnswerBuffers]) -> Answer:
    """Returns the answer to a request whose response a thread encodes."""
    return context.finish(await encoded)


def api_name(key: int) -> str:
    """Returns the name of an API for an error message, also if no API has the key."""
    return ApiKey(key).name if key in ApiKey._value2member_map_ else f"API {key}"
