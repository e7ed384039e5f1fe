"""Encodes the requests of one class for a connection, and decodes their responses.

Values that depend only on the API and the version are computed once per connection, not per request.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Final

from protocol.api_key import ApiKey
from protocol.codec import decode, encoder
from protocol.connection import JOIN_LIMIT_BYTES
from protocol.errors import ProtocolError
from protocol.messages.header import ResponseHeader
from protocol.schema import Kind, fields_of, identity
from protocol.types import Buffer

HEAD: Final = struct.Struct(">ihhi")
"""Size, API key, API version and correlation id; the client id follows."""

UNCOUNTED_BYTES: Final = 4
"""Bytes of the size field, which the size does not include."""

CORRELATION: Final = struct.Struct(">i")


class ClientCodec:
    """The client's codec for one API at one version."""

    __slots__ = ("_client_id", "_encode", "_flexible_answer", "keeps_views", "key", "response", "version")

    def __init__(self, request: type, response: type | None, version: int, client_id: str | None) -> None:
        """Takes None as `response` if no response is ever read. Raises ValueError if the response belongs to another
        API, or the version doesn't exist."""
        self.key, _, flexible = identity(request)
        if response is not None and identity(response).key != self.key:
            raise ValueError(f"{response.__name__} does not answer {request.__name__}")
        self.version = version
        self.response = response
        self.keeps_views = response is not None and has_records(response)
        """True if responses have memoryviews of their frame."""
        self._encode = encoder(request, version)
        name = b"\xff\xff" if client_id is None else len(client_id.encode()).to_bytes(2, "big") + client_id.encode()
        self._client_id = name + b"\0" if version in flexible else name
        self._flexible_answer = version in flexible and self.key != ApiKey.API_VERSIONS

    def frame(self, request: object, correlation_id: int) -> tuple[list[Buffer], int]:
        """Returns a request's buffers and their total size. Records are copied only if the request is small."""
        parts: list[Buffer] = [b"", self._client_id]
        self._encode(request, parts.append)
        size = HEAD.size + sum(map(len, parts))
        parts[0] = HEAD.pack(size - UNCOUNTED_BYTES, self.key, self.version, correlation_id)
        return [b"".join(parts)] if size <= JOIN_LIMIT_BYTES else parts, size

    def read(self, frame: Buffer) -> object:
        """Decodes the response in a whole frame. Raises ProtocolError for a malformed frame, or bytes after the
        response."""
        assert self.response is not None, "an answer was expected"
        position = CORRELATION.size
        if self._flexible_answer:
            position = position + 1 if frame[position : position + 1] == b"\0" else decode(ResponseHeader, 1, frame)[1]
        response: object
        response, end = decode(self.response, self.version, frame, position)
        if end != len(frame):
            raise ProtocolError(f"{len(frame) - end} bytes follow the end of the response", offset=end)
        return response


@cache
def has_records(message: type) -> bool:
    """True if a message has a field of record batches at any depth."""
    return any(_holds_records(field.kind) for field in fields_of(message))


def _holds_records(kind: Kind) -> bool:
    if kind.items is not None:
        return _holds_records(kind.items)
    return has_records(kind.struct) if kind.struct is not None else kind.name == "records"
