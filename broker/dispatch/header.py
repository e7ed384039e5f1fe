"""The header of a request: the fields that the broker reads, and their limits."""

from __future__ import annotations

from typing import Final

from protocol.errors import ProtocolError
from protocol.primitives import read_uvarint

HEADER_BYTES: Final = 10
"""API key, API version, correlation id, length of the client id: the start of every request header since v1."""

MAX_HEADER_TAGS: Final = 100
"""Maximum number of tags in a request's header. No client sends one; a hundred megabytes of empty tags would take
seconds to skip."""


def check_client_id(size: int, left: int) -> None:
    """Raises ProtocolError if the frame ends within its client id, which would go unnoticed before an empty body."""
    if size > left:
        raise ProtocolError(f"a client id of {size} does not fit in the {left} bytes that are left", offset=8)


def skip_tags(frame: memoryview, position: int) -> int:
    """Returns the position after a request header's tags, which a broker ignores."""
    count, position = read_uvarint(frame, position)
    if count > MAX_HEADER_TAGS:
        raise ProtocolError(f"a request header of {count} tags; at most {MAX_HEADER_TAGS} are allowed", offset=position)
    for _ in range(count):
        _, position = read_uvarint(frame, position)
        size, position = read_uvarint(frame, position)
        position += size
    return position
