"""Tests that addresses are compared in one spelling."""

from __future__ import annotations

import pytest

from protocol.addresses import canonical


@pytest.mark.parametrize(("host", "same"), [
    ("10.0.0.1", "10.0.0.1"),
    ("::ffff:10.0.0.1", "10.0.0.1"),
    ("::FFFF:a00:1", "10.0.0.1"),
    ("0:0:0:0:0:0:0:1", "::1"),
    ("::1", "::1"),
    ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
    ("fe80::1%eth0", "fe80::1"),
    ("*", "*"),
    ("localhost", "localhost"),
    ("not:an:address", "not:an:address"),
    ("", ""),
])  # fmt: skip
def test_an_address_has_one_spelling(host: str, same: str) -> None:
    assert canonical(host) == same
