"""One log on a faulty disk: producers, consumers, retention, compaction, and crashes at any call, all from one seed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from protocol.errors import KafkaError
from protocol.records.batch import iter_batches
from protocol.records.building import build
from protocol.records.control import ControlType, EndTxnMarker, end_txn_batch
from protocol.records.record import Record, read_records
from protocol.types import TopicPartition
from storage.cleaner.choice import dirty_part, job_of
from storage.cleaner.cleaner import clean
from storage.cleaner.job import Cleaned
from storage.cleaner.swap import swap_in
from storage.config import LogConfig
from storage.failure import LogDirFailure, LogDirFull
from storage.logs import Logs
from storage.producers.entry import Origin
from tests.simulation.faulty_disk import Crash, FaultyDisk
from tests.simulation.log_checks import check_all, check_restarted
from tests.simulation.log_model import Entry, Model
from tests.simulation.log_parts import CODECS, POLICIES, Cleaning, Held, able

NAME = TopicPartition("orders", 0)
DATA = "/data"
KEYS = 6
PRODUCERS = range(1, 4)
START_MS = 1_700_000_000_000
FOREVER_MS = 1 << 50
LARGE_BYTES = 150
"""Size above which an append gets no further batch, because it must fit into a segment."""


class LogWorld:
    """A run of the world; `run` raises AssertionError, or any other error."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.disk = FaultyDisk(self.dice, max_open=(100, 1, 2)[seed % 3])
        self.disk.now_ms = START_MS
        self.model = Model()
        self.config = self._draw_config()
        self.cleaning: Cleaning | None = None
        self.held: list[Held] = []
        self.epoch = 0
        self.values = 0
        self.folders = 0
        self.crash_takes_power = False
        self.counts: dict[str, int] = {}
        self._open()
        self.log.flush(self.now_ms)

    @property
    def now_ms(self) -> int:
        return self.disk.now_ms

    def _draw_config(self) -> LogConfig:
        dice = self.dice
        return LogConfig(
            cleanup_policy=dice.choice(POLICIES),
            segment_bytes=dice.choice((LARGE_BYTES + 400, 800, 1500)),
            segment_ms=dice.choice((5_000, FOREVER_MS)),
            index_interval_bytes=dice.choice((1, 150, 4096)),
            segment_index_bytes=dice.choice((48, 10_000)),
            retention_bytes=dice.choice((-1, 1000, 4000)),
            retention_ms=dice.choice((-1, 10_000, FOREVER_MS)),
            file_delete_delay_ms=dice.choice((0, 3_000)),
            delete_retention_ms=dice.choice((0, 5_000, FOREVER_MS)),
            min_compaction_lag_ms=dice.choice((0, 0, 3_000)),
            max_compaction_lag_ms=FOREVER_MS,
            min_cleanable_dirty_ratio=dice.choice((0.0, 0.3)),
            preallocate=dice.random() < 0.2,
        )

    # Life of the process

    def _unique(self) -> str:
        self.folders += 1
        return f"{self.folders:032x}"

    def _open(self) -> None:
        self.logs = Logs(
            [DATA], disk=self.disk, unique=self._unique, recovery_threads=1, producer_expiration_ms=FOREVER_MS
        )
        self.logs.load(lambda _: self.config, self.now_ms)
        if (error := self.logs.dirs[DATA].error) is not None:
            raise error
        self.log = self.logs.create(NAME, bytes(range(16)), self.config, self.now_ms)
        self.log.update_high_watermark(self.log.log_end_offset)
        self.log.assign_leader_epoch(self.epoch, self.log.log_end_offset)

    def restart(self, *, power: bool) -> None:
        """Kills the process, with `power` also the machine, and starts again; the start may crash as well."""
        self.cleaning, self.held = None, []
        lost_power = False
        while True:
            self.disk.crash(power=power)
            lost_power = lost_power or power
            if self.dice.random() < 0.15:
                self.disk.crash_at = self.disk.calls + self.dice.randint(1, 60)
            try:
                self._open()
            except Crash:
                power = self.dice.random() < 0.5
                continue
            self.disk.crash_at = None
            break
        self._count("restart after a loss of power" if lost_power else "restart after a crash")
        if self.logs.dirs[DATA].clean:
            self._count("start from clean")
        check_restarted(self.log, self.model, power=lost_power)

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def run(self, steps: int) -> None:
        for _ in range(steps):
            name, action = self.dice.choices(ACTIONS, WEIGHTS)[0]
            self._count(name)
            try:
                action(self)
            except Crash:
                self.restart(power=self.crash_takes_power)
            except LogDirFull:
                self.disk.room = None
            except LogDirFailure:
                self.restart(power=True)  # what a failed fsync has dropped, only the machine's restart brings to light
        self.disk.crash_at, self.disk.room = None, None
        self.restart(power=self.dice.random() < 0.5)
        check_all(self.log, self.model, self.now_ms)

    # Producing

    def append(self) -> None:
        data, entries = bytearray(), list[Entry]()
        for _ in range(self.dice.choice((1, 1, 1, 2, 3))):
            batch, more = self._batch(self.model.end + len(entries))
            data += batch
            entries += more
            if more[0].pid >= 0 or len(data) > LARGE_BYTES:
                break  # a producer's batches go one at a time, as the model has them
        one = entries[0].batch == entries[-1].batch
        self._append(data, entries, Origin.CLIENT if one else Origin.COORDINATOR)

    def _append(self, data: bytearray, entries: list[Entry], origin: Origin) -> None:
        before = self.model.end
        self.model.append(entries)
        try:
            appended = self.log.append(memoryview(data), leader_epoch=self.epoch, now_ms=self.now_ms, origin=origin)
        except LogDirFull:
            self.model.truncate(before)
            raise
        assert appended.base_offset == before, f"appended at {appended.base_offset}, not {before}"
        self.model.acknowledged_end = self.model.end
        self.log.update_high_watermark(self.log.log_end_offset)

    def _batch(self, offset: int) -> tuple[bytearray, list[Entry]]:
        dice = self.dice
        pid = able(dice.choice((-1, -1, *PRODUCERS)), self.log, self.model)
        ongoing = self.model.open_transactions()
        transactional = pid >= 0 and (pid in ongoing or dice.random() < 0.3)
        last = self.model.last_of_producer(pid) if pid >= 0 else None
        state = self.log.producer_state.producers.get(pid)
        sequence = -1 if pid < 0 else 0 if last is None else last.sequence + last.batch[1] - last.batch[0] + 1
        assert pid < 0 or last is None or last.offset < self.model.start or state is not None, "a producer is forgotten"
        size = dice.randint(1, 3)
        records = [self._record() for _ in range(size)]
        data = build(
            records,
            producer_id=pid,
            producer_epoch=0 if pid >= 0 else -1,
            base_sequence=sequence,
            transactional=transactional,
            compression=dice.choice(CODECS),
        )
        where = (offset, offset + size - 1)
        entries = [
            Entry(
                offset + n,
                (record.key or b"").decode(),
                None if record.value is None else record.value.decode(),
                record.timestamp,
                where,
                pid,
                sequence,
                transactional,
            )
            for n, record in enumerate(records)
        ]
        return data, entries

    def _record(self) -> Record:
        self.values += 1
        key = f"k{self.dice.randrange(KEYS)}".encode()
        value = None if self.dice.random() < 0.15 else f"v{self.values}".encode() * self.dice.choice((1, 1, 10))
        return Record(0, self.now_ms - self.dice.choice((0, 0, 0, 500, 5_000)), key, value)

    def end_transaction(self) -> None:
        ongoing = self.model.open_transactions()
        if not ongoing:
            return
        pid, commit = self.dice.choice(sorted(ongoing)), self.dice.random() < 0.5
        kind = ControlType.COMMIT if commit else ControlType.ABORT
        data = end_txn_batch(EndTxnMarker(kind, 0), pid, 0, self.now_ms)
        offset = self.model.end
        entry = Entry(offset, None, None, self.now_ms, (offset, offset), pid, transactional=True, commit=commit)
        self._append(data, [entry], Origin.COORDINATOR)

    def repeat_last_batch(self) -> None:
        """Sends a producer's last batch again, because it got no answer; the batch must not be written twice."""
        pid = self.dice.choice(PRODUCERS)
        last = self.model.last_of_producer(pid)
        if last is None or last.batch[0] < self.model.start:
            return
        first, end = last.batch
        records = [Record(0, self.now_ms, b"again", b"again") for _ in range(end - first + 1)]
        data = build(records, producer_id=pid, producer_epoch=0, base_sequence=last.sequence, transactional=False)
        appended = self.log.append(memoryview(data), leader_epoch=self.epoch, now_ms=self.now_ms)
        assert (appended.base_offset, appended.duplicate) == (first, True), f"{appended}, was {last}"

    # Consuming

    def fetch(self) -> None:
        """Lets a consumer read from a random offset, and keep the view for a while."""
        if self.model.start == self.model.end:
            return
        offset = self.dice.randint(self.model.start, self.model.end)
        result = self.log.read(offset, self.dice.choice((1, 200, 5000)), min_one=True)
        for part in result.parts:
            self._check_batches(part)
            self.held.append(Held(part, bytes(part)))
        del self.held[:-5]

    def _check_batches(self, part: memoryview) -> None:
        for position, header in iter_batches(part):
            for record in () if header.is_control else read_records(part, position, header):
                entry = self.model.entries[record.offset]
                assert record.value == (None if entry.value is None else entry.value.encode()), f"{record}, not {entry}"

    def check(self) -> None:
        for held in self.held:
            assert held.view == held.content, "what a reader holds has changed"
        check_all(self.log, self.model, self.now_ms)

    # Housekeeping

    def roll(self) -> None:
        self.log.roll(self.now_ms)

    def flush(self) -> None:
        up_to = self.log.due_flush(self.now_ms) if self.dice.random() < 0.3 else None
        self.log.flush(self.now_ms, up_to)
        if up_to is None:
            self.model.flushed_end = self.model.end

    def flush_all(self) -> None:
        self.log.flush(self.now_ms)
        self.model.flushed_end = self.model.end

    def checkpoint(self) -> None:
        self.logs.write_checkpoints()
        self.model.flushed_start = self.model.start

    def retain(self) -> None:
        if self.log.cleaning:
            return
        self.model.may_start_at = self.model.end
        self.logs.apply_retention(self.now_ms)
        self.model.start = self.log.log_start_offset
        self.model.may_start_at = self.model.start

    def delete_files(self) -> None:
        self.logs.delete_expired(self.now_ms)

    def delete_records(self) -> None:
        offset = self.dice.randint(self.model.start, self.model.end)
        if self.log.config.delete:
            self.model.may_start_at = max(self.model.may_start_at, offset)
            self.log.advance_log_start(offset)
            self.model.start = self.log.log_start_offset

    def begin_cleaning(self) -> None:
        if self.log.cleaning:
            return
        dirty = dirty_part(self.log, self.now_ms)
        if dirty is None or not dirty.is_due:
            return
        job = job_of(dirty, self.now_ms, map_bytes=self.dice.choice((1, 10_000)), load_factor=0.9)
        self.flush_all()
        self.checkpoint()
        self.model.committed_end = self.model.end
        self.model.cleanings.append((self.now_ms, job.end_offset))
        self.model.least_delete_retention_ms = min(self.model.least_delete_retention_ms, job.delete_retention_ms)
        self.log.cleaning = True
        steps = clean(job, disk=self.disk, throttle=lambda _: None)
        self.cleaning = Cleaning(self.log, steps, job.end_offset, self.log.truncations)

    def clean(self) -> None:
        if self.cleaning is None:
            self.begin_cleaning()
        elif self.cleaning.log is self.log:
            self._clean_on(self.cleaning)

    def _clean_on(self, cleaning: Cleaning) -> None:
        try:
            step = next(cleaning.steps)
        except (OSError, KafkaError) as error:
            self._end_cleaning()
            if self.log.truncations > cleaning.truncations:
                return  # the segments are no longer there, or others of their names
            if isinstance(error, KafkaError):
                raise
            raise (LogDirFull if error.errno == 28 else LogDirFailure)(DATA, str(error)) from error
        if isinstance(step, Cleaned):
            self.log.cleaned_to = min(step.end_offset, self.log.log_end_offset)
            self._end_cleaning()
            return
        self.model.clean_to = max(self.model.clean_to, min(cleaning.end_offset, self.model.end))
        if swap_in(self.log, step, disk=self.disk, now_ms=self.now_ms):
            self._count("swapped in")
        else:
            self._end_cleaning()

    def _end_cleaning(self) -> None:
        self.cleaning, self.log.cleaning = None, False

    def truncate(self) -> None:
        """Truncates the log, because a new leader has fewer records."""
        lowest = max(self.model.start, self.model.committed_end, self.model.end - 12)
        offset = self.dice.randint(lowest, self.model.end)
        inside = self.model.entries.get(offset)
        offset = inside.batch[0] if inside is not None else offset
        if offset < lowest:
            return
        self.model.acknowledged_end = min(self.model.acknowledged_end, offset)
        self.model.flushed_end = min(self.model.flushed_end, offset)
        self.logs.truncate_to(NAME, offset, self.now_ms)
        self.model.truncate(offset)
        self.log.update_high_watermark(self.log.log_end_offset)

    def change_leader(self) -> None:
        self.epoch += 1
        self.log.assign_leader_epoch(self.epoch, self.log.log_end_offset)

    def change_config(self) -> None:
        self.config = self._draw_config()
        self.log.config = self.config

    def pass_time(self) -> None:
        self.disk.now_ms += self.dice.choice((10, 1_000, 4_000))

    # Faults

    def stop(self) -> None:
        """Stops cleanly: everything is available again without a scan."""
        self.cleaning = None
        self.logs.close(self.now_ms)
        if self.logs.dirs[DATA].error is not None:
            raise LogDirFailure(DATA, str(self.logs.dirs[DATA].error))
        self.model.flushed_end = self.model.acknowledged_end = self.model.end
        self.model.flushed_start = self.model.start
        self.restart(power=self.dice.random() < 0.5)

    def crash_soon(self) -> None:
        self.disk.crash_at = self.disk.calls + self.dice.randint(1, 40)
        self.crash_takes_power = self.dice.random() < 0.6

    def fill_up(self) -> None:
        self.disk.room = self.dice.randint(0, 600)

    def break_down(self) -> None:
        """Makes one or two of the next calls fail."""
        self.disk.fault_rate = 0.3
        try:
            self.dice.choice((LogWorld.append, LogWorld.flush, LogWorld.roll, LogWorld.fetch, LogWorld.checkpoint))(
                self
            )
        except KafkaError as error:
            if not isinstance(error, LogDirFailure | LogDirFull):
                raise
            self.restart(power=True)
        finally:
            self.disk.fault_rate = 0.0


TABLE: dict[str, tuple[Callable[[LogWorld], None], int]] = {
    "append": (LogWorld.append, 40), "end transaction": (LogWorld.end_transaction, 7),
    "repeat": (LogWorld.repeat_last_batch, 3), "fetch": (LogWorld.fetch, 8), "check": (LogWorld.check, 4),
    "roll": (LogWorld.roll, 2), "flush": (LogWorld.flush, 6), "checkpoint": (LogWorld.checkpoint, 4),
    "retention": (LogWorld.retain, 4), "delete files": (LogWorld.delete_files, 4),
    "delete records": (LogWorld.delete_records, 1), "clean": (LogWorld.clean, 14), "truncate": (LogWorld.truncate, 1),
    "leader": (LogWorld.change_leader, 1), "config": (LogWorld.change_config, 1), "time": (LogWorld.pass_time, 8),
    "stop": (LogWorld.stop, 1), "crash": (LogWorld.crash_soon, 3), "full": (LogWorld.fill_up, 1),
    "break": (LogWorld.break_down, 1),
}  # fmt: skip
ACTIONS = [(name, action) for name, (action, _) in TABLE.items()]
WEIGHTS = [weight for _, weight in TABLE.values()]
