"""Zig-zag variable-length integers of v2 records (org.apache.kafka.common.utils.ByteUtils, KIP-98).

The decoders of batches inline the one-byte form (nine of ten varints), and call this module for longer forms.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from protocol.errors import ErrorCode, KafkaError

Bytes: TypeAlias = bytes | bytearray | memoryview

# Seven bits a byte: 32 bits take five bytes, with 4 bits in the last; 64 bits take ten, with 1 bit in the last.
VARINT_MAX_BYTES: Final = 5
VARLONG_MAX_BYTES: Final = 10


def encode_varint(value: int) -> bytes:
    """Returns the zig-zag varint of an int32 or int64."""
    raw = value << 1 if value >= 0 else (~value << 1) | 1
    if raw < 0x80:
        return _ONE_BYTE[raw]
    encoded = bytearray()
    while raw >= 0x80:
        encoded.append(raw & 0x7F | 0x80)
        raw >>= 7
    encoded.append(raw)
    return bytes(encoded)


_ONE_BYTE: Final = tuple(bytes((value,)) for value in range(0x80))


def decode_varint(data: Bytes, position: int) -> tuple[int, int]:
    """Returns an int32 at `position`, and the position after it. Raises KafkaError(CORRUPT_MESSAGE), or IndexError past
    the end."""
    return _decode(data, position, 32, VARINT_MAX_BYTES)


def decode_varlong(data: Bytes, position: int) -> tuple[int, int]:
    """Returns an int64 at `position`, and the position after it. Raises KafkaError(CORRUPT_MESSAGE), or IndexError past
    the end."""
    return _decode(data, position, 64, VARLONG_MAX_BYTES)


def _decode(data: Bytes, position: int, bits: int, max_bytes: int) -> tuple[int, int]:
    raw = shift = 0
    for at in range(position, position + max_bytes):
        byte = data[at]
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    else:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a varint at {position} is longer than {max_bytes} bytes")
    if raw >> bits:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a varint at {position} does not fit {bits} bits")
    return (raw >> 1) ^ -(raw & 1), at + 1
