"""An operator who changes topics all the time, and checks of the metadata logs afterwards."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from coordinator.cluster.record import MetadataBatch, decode_batches
from protocol.metadata_records.nodes import BrokerRegistrationChangeRecord, FenceBrokerRecord
from protocol.records.control import LeaderChangeMessage
from tests.interop.jvm import tool
from tests.interop.load import RECONNECT

PREFIX = "administered-"
CONFIG = "retention.ms"
ATTEMPT_S = 15
GIVE_UP_S = 240
"""Longest time that a change is repeated. Every fault is shorter, also on a busy machine."""

PAUSE_S = 0.05
FENCED = 1


class Administration(threading.Thread):
    """Creates, alters and deletes topics, one change after the other. A change is repeated until it is acknowledged, so
    the final state is known."""

    def __init__(self, bootstrap: str, seed: int) -> None:
        super().__init__(daemon=True)
        self.expected: dict[str, str | None] = {}
        """The topics that exist, with their `retention.ms`; None for the default."""
        self.changes = 0
        self.repeated = 0
        """Attempts that failed, of changes that were acknowledged later."""
        self.longest_s = 0.0
        self.faults: list[str] = []
        self._random = random.Random(seed)
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "socket.timeout.ms": 60_000, **RECONNECT})
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._stopping.wait(PAUSE_S) and not self.faults:
            begun_s = time.monotonic()
            self._change()
            self.longest_s = max(self.longest_s, time.monotonic() - begun_s)

    def _change(self) -> None:
        chance, topics = self._random.random(), [*self.expected]
        if chance < 0.5 or not topics:
            name = f"{PREFIX}{self.changes}"
            new = NewTopic(name, 1, 1)
            if self._repeat(lambda: self._admin.create_topics([new])[name], KafkaError.TOPIC_ALREADY_EXISTS):
                self.expected[name] = None
            return
        name = self._random.choice(topics)
        if chance < 0.75:
            value = str(self._random.randrange(1_000_000, 2_000_000))
            entry = ConfigEntry(CONFIG, value, incremental_operation=AlterConfigOpType.SET)
            resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
            if self._repeat(lambda: self._admin.incremental_alter_configs([resource])[resource]):
                self.expected[name] = value
        elif self._repeat(lambda: self._admin.delete_topics([name])[name], KafkaError.UNKNOWN_TOPIC_OR_PART):
            del self.expected[name]

    def _repeat(self, ask: Callable[[], Future[object]], done_already: int | None = None) -> bool:
        """Asks until the change is acknowledged; `done_already` is the error if an earlier attempt was carried out. If
        that takes too long, notes a fault and returns False."""
        deadline_s = time.monotonic() + GIVE_UP_S
        while True:
            try:
                ask().result(ATTEMPT_S)
            except (KafkaException, TimeoutError) as error:
                code = error.args[0].code() if isinstance(error, KafkaException) else None
                if code != done_already or code is None:
                    self.repeated += 1
                    if time.monotonic() > deadline_s:
                        self.faults.append(f"not acknowledged within {GIVE_UP_S} s: {error!r}")
                        return False
                    time.sleep(PAUSE_S)
                    continue
            self.changes += 1
            return True

    def finish(self) -> None:
        """Ends after the change that is under way."""
        self._stopping.set()
        self.join()

    def found(self, bootstrap: str) -> dict[str, str | None]:
        """Returns the topics that a broker has, with their `retention.ms`."""
        admin = AdminClient({"bootstrap.servers": bootstrap, **RECONNECT})
        names = [name for name in admin.list_topics(timeout=60).topics if name.startswith(PREFIX)]
        found: dict[str, str | None] = {}
        for name in names:
            resource = ConfigResource(ResourceType.TOPIC, name)
            entry = admin.describe_configs([resource])[resource].result(60)[CONFIG]
            found[name] = None if entry.is_default else entry.value
        return found


# What the controllers have on their disks


def metadata(data: Path) -> list[MetadataBatch]:
    """Returns the batches of a node's metadata log."""
    segments = sorted((data / "__cluster_metadata-0").glob("*.log"))
    return [batch for segment in segments for batch in decode_batches(memoryview(segment.read_bytes()))]


def committed(batches: Iterable[MetadataBatch], high_watermark: int) -> list[tuple[int, int, object, object]]:
    """Returns offset, epoch and records of each batch below the high watermark."""
    return [
        (batch.base_offset, batch.epoch, list(batch.records), list(batch.quorum))
        for batch in batches
        if batch.next_offset <= high_watermark
    ]


def leaders(batches: Iterable[MetadataBatch]) -> dict[int, set[int]]:
    """Returns the leaders of each epoch, of which there must be one."""
    found: dict[int, set[int]] = {}
    for batch in batches:
        for record in batch.quorum:
            if isinstance(record, LeaderChangeMessage):
                found.setdefault(batch.epoch, set()).add(record.leader_id)
    return found


def active(logs: Sequence[Path]) -> dict[int, set[Path]]:
    """Returns the controllers of Odradek that were active in each epoch, by their log files."""
    found: dict[int, set[Path]] = {}
    for log in logs:
        for epoch in re.findall(r"active controller\s+epoch=(\d+)", log.read_text(errors="replace")):
            found.setdefault(int(epoch), set()).add(log)
    return found


def fenced(batches: Iterable[MetadataBatch], after: int) -> list[int]:
    """Returns the offsets after `after` at which a broker was fenced."""
    return [
        batch.base_offset
        for batch in batches
        if batch.base_offset > after
        for record in batch.records
        if isinstance(record, FenceBrokerRecord)
        or (isinstance(record, BrokerRegistrationChangeRecord) and record.fenced == FENCED)
    ]


def dumped(data: Path, high_watermark: int) -> list[str]:
    """Returns what kafka-dump-log shows of a node's metadata log below the high watermark."""
    segments = sorted((data / "__cluster_metadata-0").glob("*.log"))
    words = ("--cluster-metadata-decoder", "--files", ",".join(map(str, segments)))
    lines = re.sub(r" position: \d+", "", tool("kafka-dump-log", *words, timeout_s=600)).splitlines()
    shown = [(re.search(r"(?:lastOffset|\| offset): (\d+)", line), line) for line in lines]
    return [line for offset, line in shown if offset is not None and int(offset[1]) < high_watermark]
