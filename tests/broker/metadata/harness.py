"""A worker that a test controls, and clusters in a directory."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TypeVar

from broker.metadata.log import CONFIG
from broker.metadata.opening import Metadata, MetadataSettings, open_metadata
from broker.metadata.snapshots import SnapshotRules
from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.options import ClusterOptions
from protocol.errors import KafkaError
from storage.checkpoint import write_clean_shutdown
from storage.config import LogConfig
from storage.disk import Disk, OsDisk
from tests.clock import ManualClock

A = TypeVar("A")

ENDPOINTS = [Endpoint("PLAINTEXT", "127.0.0.1", 9092)]
OPTIONS = ClusterOptions(listeners=tuple(ENDPOINTS))


class HandWorker:
    """Does its work at once, or when a test calls `work`."""

    def __init__(self, *, at_once: bool = True) -> None:
        self.at_once = at_once
        self.given: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = []

    def run(self, work: Callable[[], None], then: Callable[[BaseException | None], None]) -> None:
        self.given.append((work, then))
        if self.at_once:
            self.work()

    def work(self) -> None:
        given, self.given = self.given, []
        for work, then in given:
            try:
                work()
            except OSError as error:
                then(error)
            except KafkaError as error:
                then(error)
            else:
                then(None)


def now(coroutine: Coroutine[object, None, A]) -> A:
    """Returns the result of a coroutine that never has to wait, because the worker works at once."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # what the coroutine returns
    raise AssertionError("it waits")


class MetadataHarness:
    """The directories of one node, whose metadata a test opens repeatedly."""

    def __init__(self, tmp_path: Path, directories: Sequence[str] = ("data",), disk: Disk | None = None) -> None:
        self.directories = tuple(str(tmp_path / name) for name in directories)
        self.disk = disk or OsDisk()
        self.clock = ManualClock()
        self.worker = HandWorker()
        self.failures: list[KafkaError] = []
        self.random_bytes = random.Random(42).randbytes

    def open(
        self,
        options: ClusterOptions = OPTIONS,
        cluster_id: str | None = None,
        register: bool = True,
        rules: SnapshotRules | None = None,
        config: LogConfig = CONFIG,
    ) -> Metadata:
        """Opens the node; without `register`, it only reads its metadata."""
        self.clock.time_ms += 1_000
        metadata = open_metadata(
            MetadataSettings(
                self.directories,
                options,
                cluster_id=cluster_id,
                snapshots=rules or SnapshotRules(),
                log_config=config,
            ),
            disk=self.disk,
            clock=self.clock,
            worker=self.worker,
            random_bytes=self.random_bytes,
            on_failure=self.failures.append,
        )
        if register:
            self.join(metadata)
        return metadata

    def join(self, metadata: Metadata) -> None:
        """Registers the node, which then leads."""
        now(metadata.node.register(ENDPOINTS))
        now(metadata.node.unfence())

    def stop(self, metadata: Metadata) -> None:
        """Stops the node cleanly, with the markers that the logs leave."""
        now(metadata.node.leave())
        metadata.close()
        for directory in self.directories:
            write_clean_shutdown(self.disk, directory, metadata.node.broker_epoch)

    def folder(self) -> Path:
        """Returns the folder of the metadata log."""
        return Path(self.directories[0]) / "__cluster_metadata-0"
