"""Random messages of any class and version, made from the schema alone: the same seed gives the same message."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from protocol import coordinator_records, metadata_records
from protocol.api_key import ApiKey
from protocol.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from protocol.errors import ErrorCode
from protocol.messages import messages_of
from protocol.messages.header import RequestHeader, ResponseHeader
from protocol.messages.principal import DefaultPrincipalData
from protocol.schema import Field, Kind, fields_of, identity

TEXTS = ("", "a", "topic-1", "naïve ☃ 𝕏", "x" * 130, "long" * 500)
BYTES = (b"", b"\x00", b"\xff\x00\x7f", bytes(range(256)))
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
LATEST_MS = 4_102_444_800_000
"""The year 2100. Some codecs convert times to calendar types, which have a limited range."""

ERROR_CODES = [code for code in ErrorCode if code <= ErrorCode.SHARE_SESSION_LIMIT_REACHED]
"""The error codes that kio knows: those of Kafka 4.3."""


class Sampler:
    """Draws messages. `emptiness` is the probability that a field is null, empty or at its default: 0 never, 1
    always."""

    def __init__(self, seed: str, emptiness: float, texts: tuple[str, ...] = TEXTS) -> None:
        self.random = Random(seed)
        self.emptiness = emptiness
        self.texts = texts

    def message(self, cls: type, version: int, *, flexible: bool) -> Any:
        given = {}
        for field in fields_of(cls):
            in_tag = flexible and version in field.wire.tagged
            if version in field.wire.versions and not (in_tag and self.empty()):
                given[field.name] = self.field(field, version, flexible)
        return cls(**given)

    def empty(self) -> bool:
        return self.random.random() < self.emptiness

    def field(self, field: Field, version: int, flexible: bool) -> Any:
        if version in field.wire.nullable and self.empty():
            return None
        if field.name.endswith("error_code"):
            return int(self.random.choice(ERROR_CODES))
        return self.value(field.kind, version, flexible, field.name)

    def value(self, kind: Kind, version: int, flexible: bool, name: str) -> Any:
        if kind.struct is not None:
            return self.message(kind.struct, version, flexible=flexible)
        if kind.items is not None:
            count = 0 if self.empty() else self.random.choice((1, 2, 3))
            return [self.value(kind.items, version, flexible, name) for _ in range(count)]
        return self.scalar(kind.name, name)

    def scalar(self, kind: str, name: str) -> Any:
        random = self.random
        if kind == "string":
            return "" if self.empty() else random.choice(self.texts)
        if kind in ("bytes", "records"):
            return b"" if self.empty() else random.choice(BYTES)
        if kind == "bool":
            return random.random() < 0.5
        if kind == "uuid":
            return random.randbytes(16)
        if kind == "float64":
            return random.choice((0.0, -1.5, 1e300))
        if kind.startswith("u"):
            return random.choice((0, 1, 2 ** (16 if kind == "uint16" else 32) - 1))
        if "time" in name or name.endswith("_ms"):
            latest = LATEST_MS if kind == "int64" else 2**31
            return random.choice((0, random.randrange(latest), latest - 1))
        top = 2 ** (BITS[kind] - 1)
        return random.choice((-1, 0, -top, top - 1, random.randrange(-top, top)))


def versions_of(cls: type) -> range:
    versions = identity(cls).versions
    return range(versions.first, versions.last + 1)


def samples(cls: type, version: int, count: int = 4) -> Iterator[Any]:
    """Yields a full message, an empty one, and mixed ones."""
    flexible = version in identity(cls).flexible
    for number in range(count):
        emptiness = (0.0, 1.0)[number] if number < 2 else 0.35
        yield Sampler(f"{cls.__name__} {version} {number}", emptiness).message(cls, version, flexible=flexible)


def client_messages() -> list[type]:
    """Returns the requests and responses of every API."""
    return [cls for api in ApiKey for cls in messages_of(api)[1:]]


def record_messages() -> list[type]:
    """Returns the records of the internal logs, keys and values."""
    tables = (coordinator_records.CONSUMER_OFFSETS, coordinator_records.TRANSACTION_STATE)
    paths = [path for table in (*tables, coordinator_records.SHARE_GROUP_STATE) for path in table.values()]
    metadata = [metadata_records.record_class(record_type) for record_type in metadata_records.RECORDS]
    return metadata + [cls for path in paths for cls in coordinator_records.record_classes(path)]


def all_messages() -> list[type]:
    """Returns all classes that have a codec."""
    others = [RequestHeader, ResponseHeader, DefaultPrincipalData]
    return [*client_messages(), *record_messages(), *others, ConsumerProtocolSubscription, ConsumerProtocolAssignment]
