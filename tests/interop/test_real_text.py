"""Tests real input, end to end: lines of source text, written by kcat with zstd, read by the JVM console consumer."""

from __future__ import annotations

import filecmp
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from tests.interop import jvm
from tests.interop.brokers import Broker
from tests.interop.clients.confluent import Confluent

SIZE_BYTES = 100_000_000
TOPIC = "text"


def lines_of_source() -> Iterator[bytes]:
    """Yields the Python library's source line by line, each with its place, repeatedly."""
    library = Path(sysconfig.get_paths()["stdlib"])
    files = [file for file in sorted(library.rglob("*.py")) if "site-packages" not in file.parts]
    round_number = 0
    while True:
        round_number += 1
        for file in files:
            place = f"{round_number}:{file.relative_to(library)}".encode()
            for number, line in enumerate(file.read_bytes().splitlines(), 1):
                yield b"%s:%d:%s\n" % (place, number, line)


def write_text(target: Path, size_bytes: int) -> int:
    """Fills a file with at least this many bytes; returns the number of lines."""
    written = count = 0
    with target.open("wb") as out:
        for line in lines_of_source():
            if written >= size_bytes:
                return count
            written += out.write(line)
            count += 1
    raise AssertionError("there is always another round")


def test_a_hundred_megabytes_of_text_come_back_byte_for_byte(broker: Broker, tmp_path: Path) -> None:
    text, read = tmp_path / "text", tmp_path / "read"
    count = write_text(text, SIZE_BYTES)
    Confluent().create(broker.bootstrap, TOPIC)
    kcat = ["kcat", "-P", "-b", broker.bootstrap, "-t", TOPIC, "-p", "0", "-z", "zstd", "-X", "enable.idempotence=true"]
    subprocess.run([*kcat, "-l", str(text)], check=True, timeout=120)
    where = ("--bootstrap-server", broker.bootstrap, "--topic", TOPIC, "--partition", "0", "--offset", "earliest")
    command = jvm.command_of("kafka-console-consumer", *where, "--max-messages", str(count), "--timeout-ms", "60000")
    with read.open("wb") as out:
        subprocess.run(command, stdout=out, check=True, timeout=240)
    assert filecmp.cmp(text, read, shallow=False)
