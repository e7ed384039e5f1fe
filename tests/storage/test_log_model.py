"""Compares a log with a simple model: a list of records."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from protocol.records.building import build
from protocol.records.compression import Compression
from protocol.records.record import Record
from storage.config import LogConfig
from storage.segment.offsets_for_time import searched
from tests.storage.writing import NOW_MS, TP, append, config, fetch, open_log, read_all

CODECS = st.sampled_from([Compression.NONE, Compression.NONE, Compression.GZIP])


class Expected(NamedTuple):
    """A record in the model."""

    offset: int
    timestamp: int
    value: bytes


class LogAgainstAList(RuleBasedStateMachine):
    """Performs all operations of a log, in any order, with restarts and kills in between."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(mkdtemp())
        self.directory = self.root / str(TP)
        self.records: list[Expected] = []
        self.start = self.end = 0
        self.checkpointed = (0, 0)  # recovery point and log start, as the files beside the logs have them
        self.sequence = 0

    def teardown(self) -> None:
        rmtree(self.root)

    @initialize(segment_bytes=st.sampled_from([400, 1000, 5000]), interval=st.sampled_from([0, 100, 4096]))
    def make(self, segment_bytes: int, interval: int) -> None:
        self.config: LogConfig = config(segment_bytes=segment_bytes, index_interval_bytes=interval, retention_ms=-1)
        self.log = open_log(self.directory, self.config)

    @rule(times=st.lists(st.integers(0, 50), min_size=1, max_size=4), size=st.integers(0, 60), codec=CODECS)
    def produce(self, times: list[int], size: int, codec: Compression) -> None:
        values = [b"%d:" % (self.end + n) + b"x" * size for n in range(len(times))]
        records = [Record(0, NOW_MS + t, b"k", value) for t, value in zip(times, values, strict=True)]
        appended = append(self.log, memoryview(build(records, compression=codec)))
        assert appended.base_offset == self.end
        self.records += [Expected(self.end + n, NOW_MS + t, values[n]) for n, t in enumerate(times)]
        self.end += len(times)

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW_MS)

    @rule(max_bytes=st.integers(1, 3000), part=st.floats(0, 1))
    def consume(self, max_bytes: int, part: float) -> None:
        offset = self.start + round(part * (self.end - self.start))
        read = [(r.offset, r.timestamp, r.value) for r in read_all(self.log, offset, max_bytes)]
        assert read == [tuple(record) for record in self.records if record.offset >= offset]

    @rule(limit=st.floats(0, 1))
    def consume_what_is_committed(self, limit: float) -> None:
        high_watermark = self.start + round(limit * (self.end - self.start))
        read = list(fetch(self.log, self.start, 100_000, high_watermark))
        assert all(record.offset < high_watermark for record in read)

    @rule(t=st.integers(-1, 55))
    def look_up_a_time(self, t: int) -> None:
        match = searched(partial(self.log.offset_for_timestamp, NOW_MS + t))
        first = next((record for record in self.records if record.timestamp >= NOW_MS + t), None)
        assert (match and match.offset) == (first and first.offset)

    @rule()
    def look_up_the_largest_time(self) -> None:
        match = searched(self.log.max_timestamp)
        assert (-1 if match is None else match.timestamp) == max(
            (record.timestamp for record in self.records), default=-1
        )

    @rule(part=st.floats(0, 1))
    def delete_records(self, part: float) -> None:
        self.start += round(part * (self.end - self.start))
        self.log.advance_log_start(self.start)
        self.forget()

    @rule(limit=st.integers(0, 3000))
    def retain(self, limit: int) -> None:
        self.log.config = config(retention_ms=-1, retention_bytes=limit, segment_bytes=self.config.segment_bytes)
        self.log.apply_retention(NOW_MS)
        assert self.log.size_bytes >= min(limit, 0)
        assert self.log.log_start_offset >= self.start
        self.start = self.log.log_start_offset
        self.forget()

    @precondition(lambda self: self.end > self.start)
    @rule(part=st.floats(0, 1))
    def truncate(self, part: float) -> None:
        ends = sorted({header.base_offset for s in self.log.segments for _, header in s.batches()} | {self.end})
        offset = ends[round(part * (len(ends) - 1))]
        self.log.truncate_to(offset, NOW_MS)
        self.log.update_high_watermark(self.log.log_end_offset)
        self.records = [record for record in self.records if record.offset < offset]
        self.end = offset
        self.start = min(self.start, offset)
        self.checkpoint()

    @rule(offset=st.integers(0, 200))
    def begin_anew(self, offset: int) -> None:
        self.log.truncate_fully(offset, NOW_MS)
        self.records, self.start, self.end = [], offset, offset
        self.checkpoint()

    @rule()
    def flush(self) -> None:
        self.log.flush(NOW_MS)
        assert self.log.recovery_point == self.end

    @rule()
    def checkpoint(self) -> None:
        self.checkpointed = self.log.recovery_point, self.log.log_start_offset

    @rule()
    def remove_what_was_set_aside(self) -> None:
        self.log.segments.delete_expired(NOW_MS + 60_000)

    @rule()
    def stop_and_start(self) -> None:
        self.log.flush(NOW_MS)
        self.log.close()
        self.checkpoint()
        self.reopen(clean=True)
        assert self.log.recovered.segments == 0

    @rule()
    def kill_and_start(self) -> None:
        recovery_point, log_start_offset = self.checkpointed
        self.reopen(clean=False)
        assert self.log.recovered.cut is None
        assert log_start_offset <= self.log.log_start_offset <= self.start
        assert self.log.recovery_point == min(recovery_point, self.end)
        self.log.advance_log_start(self.start)

    def reopen(self, *, clean: bool) -> None:
        recovery_point, log_start_offset = self.checkpointed
        self.log = open_log(
            self.directory, self.config, clean=clean, recovery_point=recovery_point, log_start_offset=log_start_offset
        )
        self.log.update_high_watermark(self.log.log_end_offset)

    def forget(self) -> None:
        self.records = [record for record in self.records if record.offset >= self.start]

    @invariant()
    def offsets_agree(self) -> None:
        if hasattr(self, "log"):
            assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)


LogAgainstAList.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestLogAgainstAList = LogAgainstAList.TestCase
