"""The values that producers send: files of lines, the same on every machine and for every peer."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.load import Payload

SEED = 20240
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
METHODS = ("GET", "GET", "GET", "POST", "PUT", "DELETE")
FOLDERS = ("articles", "images", "users", "orders", "search", "static")
STATUSES = (200, 200, 200, 200, 301, 304, 404, 500)
# Size of the file; a tool takes a random one of its values for each record.
FILE_BYTES = 1_000_000
LINES_AT_MOST = 10_000
# A producer's default batch size.
BATCH_BYTES = 16_384


def random_letters(source: random.Random, size: int) -> str:
    return "".join(source.choices(LETTERS, k=size))


def log_lines(source: random.Random, size: int) -> str:
    """Returns entries of an access log with `size` bytes; the last entry is cut off."""
    text = ""
    while len(text) < size:
        address = ".".join(str(source.randrange(256)) for _ in range(4))
        path = f"/{source.choice(FOLDERS)}/{source.randrange(10_000)}"
        text += (
            f"{address} {source.choice(METHODS)} {path} HTTP/1.1 {source.choice(STATUSES)} {source.randrange(9_999)} "
        )
    return text[:size]


MAKERS: Mapping[Payload, Callable[[random.Random, int], str]] = {
    Payload.RANDOM: random_letters,
    Payload.LOG_LINES: log_lines,
}


def payload_file(work: Path, payload: Payload, record_bytes: int) -> Path:
    """Returns a file with values of `record_bytes` bytes, one per line; creates it with the first use."""
    file = work / f"{payload.name.lower()}-{record_bytes}.txt"
    if not file.exists():
        source = random.Random(SEED)
        count = max(1, min(LINES_AT_MOST, FILE_BYTES // record_bytes))
        file.write_text("\n".join(MAKERS[payload](source, record_bytes) for _ in range(count)))
    return file


def compressed_share(file: Path, properties: Mapping[str, str]) -> float:
    """Returns the share of a batch's bytes that remains after the client's codec; 1 without a codec. The floor
    transfers that share.
    """
    if properties.get("compression.type") != "lz4":
        return 1.0
    import lz4.frame

    batch = file.read_bytes()[:BATCH_BYTES]
    return len(lz4.frame.compress(batch)) / len(batch)
