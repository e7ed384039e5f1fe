"""The wire's own types, as annotations that message classes use.

`int32` and its kin are plain `int` to a type checker and to Python; the codec reads the width from the annotation.
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
"""16 bytes, big endian, as they are on the wire: cheap to hash and to compare."""
uuid = Annotated[Uuid, "uuid"]

Buffer = bytes | bytearray | memoryview
records = Annotated[Buffer, "records"]
"""Record batches: decoded as a view of the frame, never copied."""

NO_UUID: Uuid = bytes(16)


class TopicPartition(NamedTuple):
    """One partition of one topic, by name; the key of most tables."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def uuid_to_text(value: Uuid) -> str:
    """Returns a UUID as Kafka prints it: unpadded URL-safe base64, 22 characters (org.apache.kafka.common.Uuid)."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def uuid_from_text(text: str) -> Uuid:
    """Returns the UUID of a text that `uuid_to_text` wrote. Raises ValueError with the text when it is not 16 bytes of
    base64."""
    try:
        value = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a UUID: {error}") from None
    if len(value) != 16:
        raise ValueError(f"{text!r} is not a UUID: it holds {len(value)} bytes, 16 are needed")
    return value
