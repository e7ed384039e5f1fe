"""Decodes and encodes frames, to change a client's request or the broker's answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from broker.dispatch.api import Api
from broker.request.context import AnswerBuffers, ClientConnection, Context
from broker.request.pending import Answer, Parked, Running
from programs.control.request_view import RequestView
from protocol.codec import decode, encode, encoder
from protocol.connection import response_frame
from protocol.primitives import read_uvarint
from protocol.types import Buffer
from protocol.versions import Versions

RESPONSE_HEAD_BYTES: Final = 8
"""Bytes of the size and the correlation id."""

ANSWER_TO_ANY_VERSION: Final = 0
"""The version of the answer to ApiVersions with an unsupported version."""


def request_frame_of(view: RequestView, request: object) -> memoryview:
    """Returns the frame of another request, with the header of the client's request."""
    return memoryview(bytearray(encode(request, view.header.version, bytes(view.frame[: view.body_at]))))


def with_version(view: RequestView, version: int) -> memoryview:
    """Returns the frame with another version in its header."""
    frame = bytearray(view.frame)
    frame[2:4] = version.to_bytes(2, signed=True)
    return memoryview(frame)


def buffers_of(view: RequestView, response: object) -> list[Buffer]:
    """Returns the frame of a response to a request."""
    assert view.api is not None
    parts: list[Buffer] = []
    encoder(view.api.response, answered_version(view, view.api))(response, parts.append)
    return response_frame(view.header.correlation_id, view.response_has_tags, parts)


def response_in(view: RequestView, buffers: Sequence[Buffer]) -> object:
    """Decodes the response in an answer's buffers."""
    assert view.api is not None
    data = b"".join(buffers)
    position = RESPONSE_HEAD_BYTES
    if view.response_has_tags:
        count, position = read_uvarint(data, position)
        assert count == 0, "no answer has tags in its header"
    response: object = decode(view.api.response, answered_version(view, view.api), data, position)[0]
    return response


def answered_version(view: RequestView, api: Api) -> int:
    """Returns the version of the answer: the request's, if it is supported."""
    served: Versions = api.versions
    return view.header.version if view.header.version in served else ANSWER_TO_ANY_VERSION


def finished(view: RequestView, buffers: AnswerBuffers) -> AnswerBuffers:
    """Passes an answer that no handler has made through the interceptors, like every other answer."""
    header = view.header
    context = Context(
        view.connection, header.key, header.version, header.correlation_id, header.client_id, len(view.frame)
    )
    return context.finish(buffers)


class Awaited:
    """An answer to wait for. It is cancelled when its connection ends, even if no coroutine awaits it."""

    def __init__(self, connection: ClientConnection, answer: Answer) -> None:
        self._connection = connection
        self._future: asyncio.Future[Answer | BaseException] | None = None
        self._answer = answer
        if isinstance(answer, (Parked, Running)):
            self._begin(answer)
            connection.on_close.append(self._give_up)

    def _begin(self, answer: Parked | Running) -> None:
        """Starts to wait at once: a later start could miss the wake-up of a parked request."""
        self._answer = answer
        self._future = asyncio.get_running_loop().create_future()
        answer.begin(self._settle)

    def _settle(self, answer: Answer | BaseException) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(answer)

    async def buffers(self) -> AnswerBuffers:
        """Returns the answer's buffers once they are complete; None if there is no answer. Raises the handler's
        error."""
        try:
            while self._future is not None:
                result = await self._future
                self._future = None
                if isinstance(result, BaseException):
                    raise result
                if isinstance(result, (Parked, Running)):
                    self._begin(result)
                else:
                    self._answer = result
        finally:
            self._give_up()
            if self._give_up in self._connection.on_close:
                self._connection.on_close.remove(self._give_up)
        assert not isinstance(self._answer, (Parked, Running))
        return self._answer

    def _give_up(self, _: ClientConnection | None = None) -> None:
        if isinstance(self._answer, (Parked, Running)):
            self._answer.cancel()
