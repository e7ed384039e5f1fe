"""Tests the hosts in AlterClientQuotas: the look-ups, how many run at a time, and the limit."""

from __future__ import annotations

import threading

import pytest

from broker.handlers import alter_client_quotas as handler
from protocol.errors import ErrorCode, KafkaError

TOGETHER = 3
LONG_S = 30


async def test_names_are_looked_up_together() -> None:
    all_asked = threading.Barrier(TOGETHER)

    def is_known(host: str) -> bool:
        all_asked.wait(LONG_S)
        return host != "nobody"

    assert await handler.resolvable({"a", "b", "nobody"}, is_known) == {"a", "b"}


async def test_addresses_are_not_looked_up() -> None:
    addresses = {"10.0.0.1", "::1", *(f"10.1.0.{number}" for number in range(handler.MAX_LOOKUPS))}
    assert await handler.resolvable({*addresses, "host"}, lambda host: False) == addresses


async def test_more_names_than_that_are_refused() -> None:
    names = {f"host-{number}" for number in range(handler.MAX_LOOKUPS)}
    assert await handler.resolvable(names, lambda host: True) == names
    with pytest.raises(KafkaError, match="host names") as caught:
        await handler.resolvable({*names, "one more"}, lambda host: True)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("host", ["", "a" * 64, "\0", "127.0.0.1\0", "\ud800"])
def test_what_is_no_name_is_not_known(host: str) -> None:
    assert not handler.is_address(host)
    assert not (host and handler.is_known(host))
