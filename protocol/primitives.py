"""Variable-length integers and the checks that every decoder shares.

Source: the protocol guide's UNSIGNED_VARINT; org.apache.kafka.common.utils.ByteUtils.
"""

from __future__ import annotations

import codecs
from typing import Final

from protocol.errors import ProtocolError
from protocol.types import Buffer

MAX_UVARINT_BYTES: Final = 5
"""Maximum number of bytes of an unsigned varint: 32 bits in groups of seven."""
MAX_ONE_BYTE: Final = 0x7F
"""The largest count or length that takes one byte; each is encoded plus one (KIP-482)."""
UUID_BYTES: Final = 16


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Returns (value, position after it). Raises IndexError past the end, ProtocolError beyond 32 bits."""
    first = buffer[position]
    if first < 0x80:
        return first, position + 1
    return read_uvarint_tail(buffer, position + 1, first)


def read_uvarint_tail(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """Reads the rest of a varint whose first byte has the continuation bit, which generated decoders test inline.
    Returns (value, position after it)."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, position
    raise ProtocolError("an unsigned varint is longer than 32 bits", offset=position)


def uvarint(value: int) -> bytes:
    """Encodes `value` (0 to 2**32 - 1) as an unsigned varint."""
    if value < 0x80:
        return ONE_BYTE[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


ONE_BYTE: Final = tuple(bytes((value,)) for value in range(0x80))
"""The varints of one byte, because nearly every length on the wire is below 128."""


AS_JAVA: Final = "replace-as-java"
"""The name of the decoding error handler that replaces invalid UTF-8 by U+FFFD as Apache Kafka does. Valid UTF-8 costs
nothing."""


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Decodes invalid UTF-8 as Java's String does. Java replaces an encoded surrogate by one character, Python by
    three."""
    assert isinstance(error, UnicodeDecodeError)
    data, start = error.object, error.start
    if data[start] != SURROGATES or start + 1 == len(data) or not 0xA0 <= data[start + 1] <= 0xBF:
        return "\ufffd", error.end
    has_third = start + 2 < len(data) and 0x80 <= data[start + 2] <= 0xBF
    return "\ufffd", start + (3 if has_third else 2)


SURROGATES: Final = 0xED
"""The first of the three bytes of an encoded surrogate, whose second byte is A0 or larger."""

codecs.register_error(AS_JAVA, _replaced)


def overrun(what: str, size: int, position: int, end: int) -> ProtocolError:
    """Returns the error for a length that reaches beyond its frame."""
    return ProtocolError(f"{what} of {size} does not fit in the {end - position} bytes that are left", offset=position)


def unexpected_null(what: str, position: int) -> ProtocolError:
    return ProtocolError(f"{what} is null, which is not allowed", offset=position)
