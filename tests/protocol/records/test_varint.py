"""Tests zig-zag varints: the encodings in the documentation of protocol buffers, and the bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import ErrorCode, KafkaError
from protocol.records.varint import decode_varint, decode_varlong, encode_varint

int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (-2, "03"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (-65, "8101"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_known_forms(value: int, encoded: str) -> None:
    assert encode_varint(value).hex() == encoded
    assert decode_varlong(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@given(int32s)
def test_int32_comes_back(value: int) -> None:
    encoded = encode_varint(value)
    assert decode_varint(b"x" + encoded + b"y", 1) == (value, 1 + len(encoded))


@given(int64s)
def test_int64_comes_back(value: int) -> None:
    encoded = encode_varint(value)
    assert decode_varlong(memoryview(encoded), 0) == (value, len(encoded))


@pytest.mark.parametrize("encoded", ["8080808080", "808080808000", "8080808010", "ffffffff7f"])
def test_more_than_32_bits_are_no_varint(encoded: str) -> None:
    with pytest.raises(KafkaError) as caught:
        decode_varint(bytes.fromhex(encoded), 0)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_more_than_64_bits_are_no_varlong() -> None:
    with pytest.raises(KafkaError):
        decode_varlong(b"\xff" * 9 + b"\x02", 0)
