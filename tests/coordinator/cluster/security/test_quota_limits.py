"""Tests the quota that applies to a client."""

from __future__ import annotations

import pytest

from coordinator.cluster.security.quota_limits import Entity, QuotaLimits, Scope, address_limits
from coordinator.cluster.security.quotas import Quotas
from protocol.metadata_records.settings import ClientQuotaRecord, EntityData

KEY = "producer_byte_rate"
LEVELS: list[tuple[Entity, Scope]] = [
    ((("client-id", "c"), ("user", "u")), Scope("u", "c")),
    ((("client-id", None), ("user", "u")), Scope("u", "c")),
    ((("user", "u"),), Scope("u", "")),
    ((("client-id", "c"), ("user", None)), Scope("u", "c")),
    ((("client-id", None), ("user", None)), Scope("u", "c")),
    ((("user", None),), Scope("u", "")),
    ((("client-id", "c"),), Scope("", "c")),
    ((("client-id", None),), Scope("", "c")),
]
"""The eight levels, the most specific first, and the clients that share the quota of a user `u` with a client id
`c`."""


@pytest.mark.parametrize("level", range(len(LEVELS)))
def test_the_most_specific_quota_holds(level: int) -> None:
    quotas = {entity: {KEY: float(number)} for number, (entity, _) in enumerate(LEVELS) if number >= level}
    limit = QuotaLimits(quotas, KEY).find("u", "c")
    assert limit == (float(level), LEVELS[level][1])


def test_who_has_no_quota_has_no_limit() -> None:
    limits = QuotaLimits({(("user", "other"),): {KEY: 1.0}, (("user", "u"),): {"request_percentage": 1.0}}, KEY)
    assert limits.find("u", "c") is None
    assert len(limits) == 1


def test_addresses_have_quotas_of_their_own() -> None:
    quotas: dict[Entity, dict[str, float]] = {
        (("ip", "10.0.0.1"),): {"connection_creation_rate": 5.0},
        (("ip", "0:0:0:0:0:0:0:1"),): {"connection_creation_rate": 7.0},
        (("ip", None),): {"connection_creation_rate": 9.0},
    }
    assert address_limits(quotas, "connection_creation_rate") == {"10.0.0.1": 5.0, "::1": 7.0, None: 9.0}
    assert QuotaLimits(quotas, "connection_creation_rate").find("u", "c") is None


def test_limits_follow_each_change() -> None:
    quotas = Quotas()

    def limit_after(value: float, *, remove: bool = False) -> float | None:
        entity = [EntityData(entity_type="user", entity_name="u")]
        quotas.apply(ClientQuotaRecord(entity=entity, key=KEY, value=value, remove=remove))
        limit = quotas.limits(KEY).find("u", "c")
        return None if limit is None else limit[0]

    assert [limit_after(1.0), limit_after(2.0), limit_after(0.0, remove=True)] == [1.0, 2.0, None]
