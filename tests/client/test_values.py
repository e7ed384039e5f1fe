"""Tests addresses of peers, and the imports of a client."""

from __future__ import annotations

import subprocess
import sys

import pytest

from client.address import Address

HEAVY = ("uvloop", "re2", "dataclasses_json", "storage", "coordinator", "broker.config", "programs.run")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9092", Address("127.0.0.1", 9092)),
        (" broker-1.example:1 ", Address("broker-1.example", 1)),
        ("[::1]:65535", Address("::1", 65535)),
    ],
)
def test_an_address_is_read_and_written_alike(text: str, address: Address) -> None:
    assert Address.parse(text) == address
    assert str(address) == text.strip()


@pytest.mark.parametrize(
    "text",
    ["", "host", "host:", ":9092", "host:0", "host:65536", "host:-1", "host:9x", "host:99999999", "::1:9092", "host:٣"],
)
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="such as 127"):
        Address.parse(text)


def test_a_command_that_speaks_to_brokers_loads_little() -> None:
    program = "import sys, client.pool, broker.clock; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(HEAVY) & set(ended.stdout.split())
