"""The resources that can have dynamic configs (org.apache.kafka.common.config.ConfigResource)."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class ResourceType(IntEnum):
    """Types of resources, by their codes in requests and records. Broker loggers are never in the metadata."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32

    @classmethod
    def of(cls, code: int) -> ResourceType:
        """Returns the type with this code; UNKNOWN for any other code."""
        return cls(code) if code in _CODES else cls.UNKNOWN


_CODES = frozenset(member.value for member in ResourceType)


class ConfigResource(NamedTuple):
    """A resource that can have configs. A broker with an empty name stands for all brokers."""

    type: ResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.type.name.lower().replace('_', ' ')} {self.name!r}"


DEFAULT_BROKER = ConfigResource(ResourceType.BROKER, "")
