"""Request frames: a header and a body, without the size field."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any, Final, NamedTuple

from broker.dispatch.api import Api
from broker.dispatch.header import skip_tags
from broker.handlers import APIS
from protocol.codec import MALFORMED, decode, encode
from protocol.errors import ProtocolError
from protocol.schema import identity

CLIENT_ID: Final = b"fuzz"
HEADER: Final = struct.Struct(">hhih")


class Head(NamedTuple):
    """The fields of a frame's header."""

    key: int
    version: int
    correlation_id: int


def frame(request: object, version: int, correlation_id: int = 0) -> bytes:
    """Returns a request as a client sends it. Raises struct.error if a string is too long for the version."""
    message = identity(type(request))
    head = HEADER.pack(message.key, version, correlation_id, len(CLIENT_ID)) + CLIENT_ID
    return encode(request, version, head + (b"\0" if version in message.flexible else b""))


def head_of(data: bytes) -> Head | None:
    """Returns the header of a frame; None if the frame is too short."""
    return Head(*HEADER.unpack_from(data)[:3]) if len(data) >= HEADER.size else None


def request_of(data: bytes) -> tuple[Any, int] | None:
    """Returns the request in a frame and its version; None if a broker couldn't parse it either."""
    head = head_of(data)
    api = None if head is None else served().get(head.key)
    if head is None or api is None or head.version not in api.versions:
        return None
    try:
        (size,) = struct.unpack_from(">h", data, HEADER.size - 2)
        position = HEADER.size + max(0, size)
        if head.version in identity(api.request).flexible:
            position = skip_tags(memoryview(data), position)
        return decode(api.request, head.version, data, position)[0], head.version
    except (*MALFORMED, ProtocolError):
        return None


def with_correlation_id(data: bytes, correlation_id: int) -> bytes:
    """Returns the frame with another correlation id, by which its answer can be identified."""
    return data if len(data) < 8 else b"".join((data[:4], struct.pack(">i", correlation_id), data[8:]))


def sized(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


@cache
def served() -> dict[int, Api]:
    """Returns the APIs that handlers serve, by their keys."""
    return {int(api.key): api for api in APIS}
