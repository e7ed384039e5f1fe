"""Log managers for tests."""

from __future__ import annotations

import itertools
from pathlib import Path

from protocol.types import TopicPartition
from storage.logs import Logs
from tests.storage.writing import DISK, NOW_MS, config, read_all, values, write

ID = bytes(range(16))
OTHER_ID = bytes(range(1, 17))
TOPIC = "orders"
CONFIG = config(segment_bytes=300)


def place(partition: int, topic: str = TOPIC) -> TopicPartition:
    return TopicPartition(topic, partition)


def start(*dirs: Path, threads: int = 2) -> Logs:
    numbers = itertools.count()
    logs = Logs(list(map(str, dirs)), disk=DISK, unique=lambda: f"{next(numbers):032x}", recovery_threads=threads)
    logs.load(lambda _: CONFIG, NOW_MS)
    return logs


def create(logs: Logs, partition: int, *written: str) -> None:
    log = logs.create(place(partition), ID, CONFIG, NOW_MS)
    for value in written:
        write(log, value)


def contents(logs: Logs, partition: int) -> list[str]:
    log = logs.get(place(partition))
    assert log is not None
    return values(read_all(log))


def folders(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.is_dir())
