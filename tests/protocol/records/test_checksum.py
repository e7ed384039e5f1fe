"""Tests CRC-32C with its published check values, and against the package that provides the function."""

from __future__ import annotations

import subprocess
import sys

import crc32c as package
import pytest

from protocol.records.checksum import crc32c


@pytest.mark.parametrize(
    ("data", "checksum"),
    [(b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43)],
)
def test_known_values(data: bytes, checksum: int) -> None:
    assert crc32c(data) == checksum
    assert crc32c(memoryview(bytearray(data))) == checksum
    assert package.crc32c(data) == checksum


def test_starting_up_does_not_import_what_the_package_does() -> None:
    program = (
        "import sys, protocol.records.batch; print([name for name in ('crc32c', 'argparse') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
