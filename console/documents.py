"""Documents in keys and values: MessagePack, CBOR, and whatever a schema describes, as values that JSON can write.

Records are written by strangers, so every document is bounded: bytes before it is decoded, items and depth after it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from io import BytesIO
from typing import TYPE_CHECKING, Final

from protocol.lazy import lazy

if TYPE_CHECKING:
    import cbor2
    import msgpack
else:  # with the first record that may have them
    cbor2 = lazy("cbor2")
    msgpack = lazy("msgpack")

MAX_BYTES: Final = 4 * 1024 * 1024
"""Bytes of the largest key or value that is decoded."""

MAX_ITEMS: Final = 200_000
"""Items of a document. A few bytes of CBOR can name the same list again and again."""

MAX_DEPTH: Final = 200
MAX_DIGITS: Final = 4000
"""Digits of the largest number that Python turns into text."""

MAX_LENGTH: Final = 1 << 16
"""Items of a list of MessagePack, which allocates a list by the length that the bytes claim."""


class UnreadableDocument(Exception):
    """The bytes have another format, or a document beyond the limits."""


def as_json(value: object) -> bytes:
    """Returns the JSON text of a document. Raises UnreadableDocument."""
    return json.dumps(Plain().value(value, MAX_DEPTH), ensure_ascii=False).encode(errors="surrogatepass")


class Plain:
    """Turns the values of a document into values of JSON, at most MAX_ITEMS."""

    def __init__(self) -> None:
        self._left = MAX_ITEMS

    def value(self, value: object, depth: int) -> object:
        """Returns the value of JSON. Raises UnreadableDocument."""
        self._left -= 1
        if self._left < 0 or depth < 0:
            raise UnreadableDocument(f"more than {MAX_ITEMS} items, or {MAX_DEPTH} levels")
        if value is None or isinstance(value, bool | float | str):
            return value
        if isinstance(value, int):
            return value if value.bit_length() < MAX_DIGITS * 3 else hex(value)
        if isinstance(value, Mapping):
            return {self._key(key): self.value(item, depth - 1) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(item, depth - 1) for item in value]
        return _word(value)

    def _key(self, key: object) -> str:
        if isinstance(key, str):
            return key
        self._left -= 1
        return json.dumps(key) if key is None or isinstance(key, bool | float) else str(_word(key))


def _word(value: object) -> object:
    """Returns a value that JSON lacks as text: bytes in hexadecimal, times as ISO 8601 writes them."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    try:
        return str(value)[:MAX_DIGITS]
    except (ValueError, RecursionError) as error:
        raise UnreadableDocument(str(error)) from None


def read_msgpack(data: bytes) -> object:
    """Returns the document of MessagePack. Raises UnreadableDocument."""
    try:
        return msgpack.unpackb(
            data,
            strict_map_key=False,
            unicode_errors="replace",
            max_array_len=MAX_LENGTH,
            max_map_len=MAX_LENGTH,
            ext_hook=lambda code, content: {"type": code, "data": content},
        )
    except (ValueError, TypeError, OverflowError, RecursionError, MemoryError) as error:
        raise UnreadableDocument(f"not MessagePack: {error or type(error).__name__}") from None


def read_cbor(data: bytes) -> object:
    """Returns the document of CBOR. Raises UnreadableDocument."""
    stream = BytesIO(data)
    try:
        value: object = cbor2.CBORDecoder(stream).decode()
    except Exception as error:  # a decoder of a tag raises what it likes
        raise UnreadableDocument(f"not CBOR: {error or type(error).__name__}") from None
    if stream.tell() < len(data):
        raise UnreadableDocument(f"not CBOR: {len(data) - stream.tell()} bytes follow it")
    return value


Read = Callable[[bytes], object]

FORMATS: Final[dict[str, Read]] = {"msgpack": read_msgpack, "cbor": read_cbor}
"""The formats that need no schema."""

CBOR_HEAD: Final = b"\xd9\xd9\xf7"
"""The tag that marks CBOR (RFC 8949, 3.4.6)."""


def document_of(data: bytes, name: str) -> object:
    """Returns the document of a format that needs no schema. Raises UnreadableDocument."""
    if len(data) > MAX_BYTES:
        raise UnreadableDocument(f"more than {MAX_BYTES} bytes")
    return FORMATS[name](data)


def guessed(data: bytes) -> tuple[str, object] | None:
    """Returns the format and the document of bytes that are MessagePack or CBOR beyond doubt: a map of names that ends
    with the bytes, or CBOR with its mark. None for anything else."""
    if len(data) < 2 or len(data) > MAX_BYTES:
        return None
    first = data[0]
    names = []
    if 0x81 <= first <= 0x8F or first in (0xDE, 0xDF):  # fixmap, map 16, map 32
        names.append("msgpack")
    if 0xA1 <= first <= 0xBB or first == 0xBF or data.startswith(CBOR_HEAD):
        names.append("cbor")
    for name in names:
        try:
            document = FORMATS[name](data)
        except UnreadableDocument:
            continue
        if isinstance(document, Mapping) and all(isinstance(key, str) and key.isprintable() for key in document):
            return name, document
    return None
