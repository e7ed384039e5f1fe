"""Finds the quota of a client: the quota of the most specific entity that has one.

Source: Kafka's ClientQuotaManager.DefaultQuotaCallback.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from protocol.addresses import canonical

USER, CLIENT_ID, IP = "user", "client-id", "ip"
"""The types of the parts of an entity."""

Entity: TypeAlias = tuple[tuple[str, str | None], ...]
"""The parts of an entity by type, sorted; None is the default of a type."""

ABSENT: Final = ""
"""Stands for a part that an entity doesn't have; a name is never empty."""


class Scope(NamedTuple):
    """The clients that share a quota: of a user, of a client id, or of both together."""

    user: str
    client_id: str


class Limit(NamedTuple):
    """A quota, and the clients that share it."""

    value: float
    scope: Scope


class QuotaLimits:
    """The limits of one kind, such as producer_byte_rate."""

    def __init__(self, quotas: Mapping[Entity, Mapping[str, float]], key: str) -> None:
        self._limits: dict[tuple[str | None, str | None], float] = {}
        for entity, values in quotas.items():
            parts = dict(entity)
            if key in values and IP not in parts:
                self._limits[parts.get(USER, ABSENT), parts.get(CLIENT_ID, ABSENT)] = values[key]

    def __len__(self) -> int:
        return len(self._limits)

    def find(self, user: str, client_id: str) -> Limit | None:
        """Returns the limit of a client; None if it has none."""
        limits = self._limits
        for entity, scope in (
            ((user, client_id), Scope(user, client_id)),
            ((user, None), Scope(user, client_id)),
            ((user, ABSENT), Scope(user, ABSENT)),
            ((None, client_id), Scope(user, client_id)),
            ((None, None), Scope(user, client_id)),
            ((None, ABSENT), Scope(user, ABSENT)),
            ((ABSENT, client_id), Scope(ABSENT, client_id)),
            ((ABSENT, None), Scope(ABSENT, client_id)),
        ):
            value = limits.get(entity)
            if value is not None:
                return Limit(value, scope)
        return None


def address_limits(quotas: Mapping[Entity, Mapping[str, float]], key: str) -> dict[str | None, float]:
    """Returns the limits of addresses in canonical spelling; the key None is for all other addresses."""
    return {
        None if (ip := parts[IP]) is None else canonical(ip): values[key]
        for entity, values in quotas.items()
        if key in values and IP in (parts := dict(entity))
    }
