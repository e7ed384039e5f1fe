"""A node's metadata on a disk that fails, fills up and loses power, with slow flushes and snapshots.

Invariants: no one sees uncommitted records; records that were seen or answered exist after any crash; the image is the
fold of the records on disk; and a node starts on any directory that a crash leaves.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from random import Random

from broker.metadata.damage import LostMetadata
from broker.metadata.led_log import LedLog
from broker.metadata.log import log_config
from broker.metadata.opening import Metadata, MetadataSettings, accept_loss, open_metadata
from broker.metadata.snapshots import SnapshotRules
from coordinator.cluster.changes import Delta
from coordinator.cluster.image import Image
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.record import MetadataBatch
from protocol.errors import KafkaError
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsTopic
from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from protocol.metadata_records.settings import ConfigRecord
from storage.checkpoint import write_clean_shutdown
from tests.broker.metadata.harness import ENDPOINTS, HandWorker
from tests.clock import ManualClock
from tests.coordinator.cluster import given
from tests.coordinator.cluster.test_image_records import everything
from tests.simulation.faulty_disk import Crash, FaultyDisk

DIRECTORY = "/data"
RULES = SnapshotRules(max_record_bytes=1_500, max_interval_ms=60_000, retention_bytes=6_000, retention_ms=600_000)
CONFIG = log_config(segment_bytes=2_500)
NAMES = ("orders", "pay.ments", "pay_ments", "clicks")


class MetadataWorld:
    """A run of the world, which is determined by its seed."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.disk = FaultyDisk(Random(seed + 1))
        self.clock = ManualClock()
        self.counts: Counter[str] = Counter()
        self.batches: dict[int, MetadataBatch] = {}
        """The committed batches of all sessions, by base offset."""
        self.answered_to = 0
        """The offset below which all records are committed, because answers depended on them."""
        self.made = 0
        self.failed: list[KafkaError] = []

    # Sessions

    def open(self) -> Metadata:
        self.worker = HandWorker(at_once=False)
        self.failed = []
        self.tasks: list[asyncio.Task[object]] = []
        metadata = open_metadata(
            MetadataSettings((DIRECTORY,), ClusterOptions(), snapshots=RULES, log_config=CONFIG),
            disk=self.disk,
            clock=self.clock,
            worker=self.worker,
            random_bytes=self.dice.randbytes,
            on_failure=self.failed.append,
        )
        self.metadata = metadata
        self.check_start()
        metadata.metadata_log.listen(self.note)
        metadata.loader.subscribe(self.seen)
        return metadata

    def start(self) -> None:
        """Starts a session, unless the disk fails. A power loss may leave whole batches after a damaged batch that no
        answer depended on; the operator accepts that loss."""
        try:
            with suppress(LostMetadata):
                self.open()
                return
            self.counts["loss accepted"] += 1
            accept_loss([DIRECTORY], DIRECTORY, disk=self.disk, clock=self.clock)
            self.open()
        except (KafkaError, OSError) as error:
            if not self.disk.fault_rate:
                raise AssertionError(f"it does not start: {error}") from error
            raise

    @property
    def log(self) -> LedLog:
        """Returns the log that this process leads."""
        log = self.metadata.metadata_log
        assert isinstance(log, LedLog)
        return log

    def note(self, batch: MetadataBatch) -> None:
        self.batches[batch.base_offset] = batch

    def seen(self, delta: Delta) -> None:
        """Checks, as a subscriber, that each batch is on the device, and is new."""
        log = self.metadata.metadata_log
        assert delta.offset < log.high_watermark <= log._log.recovery_point, "told before it was committed"
        assert delta.offset == self.metadata.image.offset
        self.answered_to = max(self.answered_to, delta.offset + 1)

    def check_start(self) -> None:
        """Checks that all committed batches are on disk unchanged, and that the image is their fold, together with
        other records that had reached the disk."""
        log = self.metadata.metadata_log
        assert log.high_watermark >= self.answered_to, "what was committed is gone"
        for batch in log.batches(log.start_offset):
            committed = self.batches.get(batch.base_offset)
            if committed is not None and committed.last_offset < self.answered_to:
                assert (committed.last_offset, committed.epoch) == (batch.last_offset, batch.epoch)
                assert list(committed.records) == list(batch.records), "what was committed is another"
            else:
                self.batches[batch.base_offset] = batch
        for offset in [offset for offset in self.batches if offset >= log.high_watermark]:
            del self.batches[offset]
        self.check_image()

    def check_image(self) -> None:
        """Checks that the image is the fold of all committed records; the controller's state also has its appended
        records."""
        metadata = self.metadata
        fold = MetadataLoader(Image(metadata.image.cluster_id))
        for offset in sorted(self.batches):
            fold.commit(self.batches[offset])
        assert everything(metadata.image) == everything(fold.image), "the image is not the fold of the log"
        if self.log.failed is None:
            for batch in self.log.uncommitted:
                for record in batch.records:
                    fold.image.apply(record)
            state = metadata.controller._machine.image  # type: ignore[attr-defined]
            assert everything(state) == everything(fold.image)

    # Steps

    async def run(self, steps: int) -> None:
        for _ in range(steps // 20):
            await self.session()

    async def session(self) -> None:
        how = self.dice.choice(["stop", "kill", "kill", "power", "power"])
        if how != "stop":
            self.disk.crash_at = self.disk.calls + self.dice.randint(1, 400)
        self.disk.fault_rate = self.dice.choice([0.0, 0.0, 0.0, 0.002])
        try:
            self.start()
            await self.drive(self.metadata.node.register(ENDPOINTS))
            await self.drive(self.metadata.node.unfence())
            for _ in range(self.dice.randint(5, 40)):
                await self.step()
            if how == "stop":
                await self.leave()
        except (Crash, OSError, KafkaError) as error:
            self.counts[type(error).__name__] += 1
            how = "kill" if how == "stop" else how
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.counts[how] += 1
        self.disk.crash(power=how == "power")

    async def leave(self) -> None:
        """Stops cleanly."""
        await self.drive(self.metadata.node.leave())
        while self.worker.given:
            self.worker.work()
        self.metadata.close()
        write_clean_shutdown(self.disk, DIRECTORY, self.metadata.node.broker_epoch)
        self.counts["left in order"] += 1

    async def drive(self, request: Coroutine[object, object, object]) -> None:
        """Completes a request, while the disk works."""
        task = asyncio.ensure_future(request)
        self.tasks.append(task)
        while not task.done():
            await asyncio.sleep(0)
            self.worker.work()
        self.tasks.remove(task)
        await task

    async def step(self) -> None:
        self.clock.time_ms += self.dice.choice([1, 1_000, 30_000])
        if self.log.failed is not None:
            assert len(self.failed) == 1
            raise self.log.failed
        choice = self.dice.random()
        if choice < 0.5:
            self.spawn(self.request())
            await asyncio.sleep(0)
        elif choice < 0.85:
            self.worker.work()
            await asyncio.sleep(0)
        elif choice < 0.95:
            self.metadata.snapshots.maintain()
        else:
            self.disk.room = self.dice.choice([0, 300, None, None])
        self.harvest()
        self.check_image()

    def spawn(self, request: Coroutine[object, object, object]) -> None:
        self.tasks.append(asyncio.ensure_future(request))

    def harvest(self) -> None:
        """Checks the requests with an answer: the records that they depend on are committed."""
        for task in [task for task in self.tasks if task.done()]:
            self.tasks.remove(task)
            try:
                task.result()
                self.counts["answered"] += 1
            except KafkaError as error:
                self.counts[f"refused: {error.code.name}"] += 1

    def request(self) -> Coroutine[object, object, object]:
        controller, name = self.metadata.controller, self.dice.choice(NAMES)
        kind = self.dice.randrange(5)
        if kind == 0:
            return controller.submit(DeleteTopicsRequest(topic_names=[name], timeout_ms=1), DeleteTopicsResponse)
        if kind == 1:
            grown = [CreatePartitionsTopic(name=name, count=self.dice.randint(2, 6), assignments=None)]
            return controller.submit(
                CreatePartitionsRequest(topics=grown, timeout_ms=1, validate_only=False), CreatePartitionsResponse
            )
        if kind == 2:
            self.made += 1
            value = self.dice.choice([None, str(self.made)])
            record = ConfigRecord(resource_type=2, resource_name=name, name="retention.ms", value=value)
            return controller.write([record])  # type: ignore[attr-defined, no-any-return]
        if kind == 3:
            return self.metadata.node.allocate_producer_ids()
        return controller.submit(
            CreateTopicsRequest(topics=[given.creatable(name, self.dice.randint(1, 4), 1)]), CreateTopicsResponse
        )


def simulate(seed: int, steps: int) -> MetadataWorld:
    """Simulates this number of steps, and returns the world."""
    world = MetadataWorld(seed)
    with suppress(asyncio.CancelledError):
        asyncio.run(world.run(steps))
    return world
