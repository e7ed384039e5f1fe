"""The resources that can have dynamic configs (org.apache.kafka.common.config.ConfigResource)."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class ResourceType(IntEnum):
    """Kinds of resources, by the byte that requests and records carry. Broker loggers are never in the metadata."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32

    @classmethod
    def of(cls, code: int) -> ResourceType:
        """The type of this code, UNKNOWN for any other."""
        return cls(code) if code in _CODES else cls.UNKNOWN


_CODES = frozenset(member.value for member in ResourceType)


class ConfigResource(NamedTuple):
    """One configurable thing; the broker of the empty name is the default of all brokers."""

    type: ResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.type.name.lower().replace('_', ' ')} {self.name!r}"


DEFAULT_BROKER = ConfigResource(ResourceType.BROKER, "")
