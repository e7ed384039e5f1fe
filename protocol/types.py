"""The wire types, as annotations for message classes.

`int32` and the other integer types are plain `int` for Python and for type checkers; the codec reads the width from the
annotation.
Source: the protocol guide's "Protocol Primitive Types".
"""

from __future__ import annotations

import base64
from typing import Annotated, NamedTuple

int8 = Annotated[int, "int8"]
int16 = Annotated[int, "int16"]
int32 = Annotated[int, "int32"]
int64 = Annotated[int, "int64"]
uint16 = Annotated[int, "uint16"]
uint32 = Annotated[int, "uint32"]
float64 = Annotated[float, "float64"]

Uuid = bytes
"""16 bytes, big endian, as on the wire: cheap to hash and to compare."""
uuid = Annotated[Uuid, "uuid"]

Buffer = bytes | bytearray | memoryview
records = Annotated[Buffer, "records"]
"""Record batches, decoded as a view of the frame and never copied."""

NO_UUID: Uuid = bytes(16)


class TopicPartition(NamedTuple):
    """A partition of a topic, by topic name. The key of most tables."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def uuid_to_text(value: Uuid) -> str:
    """Returns a UUID as Kafka prints it: unpadded URL-safe base64, 22 characters (org.apache.kafka.common.Uuid)."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def uuid_from_text(text: str) -> Uuid:
    """Parses a UUID that `uuid_to_text` wrote. Raises ValueError, which names the text, if it isn't 16 bytes of
    base64."""
    try:
        value = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a UUID: {error}") from None
    if len(value) != 16:
        raise ValueError(f"{text!r} is not a UUID: it holds {len(value)} bytes, 16 are needed")
    return value
