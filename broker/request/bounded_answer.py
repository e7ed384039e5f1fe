"""Limits the bytes of an answer: a small request can name a large object a hundred thousand times."""

from __future__ import annotations

from typing import Final

from protocol.api_key import ApiKey
from protocol.connection import small_joined
from protocol.errors import ProtocolError
from protocol.types import Buffer

MAX_ANSWER_BYTES: Final = 100_000_000
"""Maximum size of an answer without a Fetch's records: as much as librdkafka accepts (`receive.message.max.bytes`)."""

SMALL_REQUEST_BYTES: Final = 1000
"""Answers to requests up to this size aren't counted, because such a request can't name enough for a large answer."""

MAX_UNJOINED: Final = 256
"""Number of parts of an answer that are joined at once: some kilobytes."""


class BoundedAnswer:
    """The parts of an answer while it is encoded. They are joined as they come: to join a million at the end would
    keep the interpreter's lock for a tenth of a second, also in a thread."""

    __slots__ = ("_joined", "_key", "_left_bytes", "_parts", "_version")

    def __init__(self, key: ApiKey, version: int, parts: list[Buffer]) -> None:
        self._key = key
        self._version = version
        self._parts = parts
        self._left_bytes = MAX_ANSWER_BYTES
        self._joined = 0
        """The number of parts that are joined."""

    def append(self, part: Buffer) -> None:
        """Adds a part. Raises ProtocolError once the answer is too large."""
        self._left_bytes -= len(part)
        if self._left_bytes < 0:
            reason = f"its answer would exceed {MAX_ANSWER_BYTES} bytes; request less at once"
            raise ProtocolError(f"{self._key.name} v{self._version}: {reason}", offset=0)
        parts = self._parts
        parts.append(part)
        if len(parts) - self._joined > MAX_UNJOINED:
            parts[self._joined :] = small_joined(parts[self._joined :])
            self._joined = len(parts)
