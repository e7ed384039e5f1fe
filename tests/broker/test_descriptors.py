"""Tests the division of the process's descriptors."""

from __future__ import annotations

import pytest

from broker.network.descriptors import MAX_MAPPINGS, OWN, WAITING_CONNECTIONS, shares


@pytest.mark.parametrize("limit", [98, 128, 1024, 20_000, 1 << 20])
def test_all_shares_together_leave_some(limit: int) -> None:
    given = shares(limit)
    assert min(given) > 0
    assert given.connections + given.files + 3 * given.mappings + OWN + WAITING_CONNECTIONS < limit
    assert given.mappings <= MAX_MAPPINGS


def test_the_usual_limit_of_a_shell_serves_hundreds_of_clients() -> None:
    assert shares(1024) == (471, 235, 58)
