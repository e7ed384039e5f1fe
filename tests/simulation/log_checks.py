"""The invariants of a log after any events."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from protocol.records.batch import BatchHeader, iter_batches, validate
from protocol.records.record import Record, read_records
from storage.log import Log
from storage.segment.offsets_for_time import searched
from tests.simulation.log_model import Entry, Model


class LogContent(NamedTuple):
    """The content of a log, as a reader from the start sees it."""

    batches: list[BatchHeader]
    records: dict[int, Record]


def read_log(log: Log) -> LogContent:
    batches: list[BatchHeader] = []
    records: dict[int, Record] = {}
    at = log.log_start_offset
    while at < log.log_end_offset:
        result = log.read(at, 2_000)
        fresh = 0
        for part in result.parts:
            for position, header in iter_batches(part):
                validate(part, position, header)
                if header.last_offset < at:
                    continue
                assert not batches or header.base_offset > batches[-1].last_offset, "batches overlap"
                batches.append(header)
                for record in () if header.is_control else read_records(part, position, header):
                    if record.offset >= log.log_start_offset:
                        records[record.offset] = record
                at, fresh = header.next_offset, fresh + 1
        if not fresh:
            break
    return LogContent(batches, records)


def check_restarted(log: Log, model: Model, *, power: bool) -> None:
    """Checks the bounds of a log after a restart, and removes lost entries from the model."""
    durable_end = model.flushed_end if power else model.acknowledged_end
    assert durable_end <= log.log_end_offset <= model.end, (
        f"the log ends at {log.log_end_offset}: {durable_end} had to survive, of {model.end}"
    )
    highest = max(model.start, model.may_start_at)
    assert model.flushed_start <= log.log_start_offset <= max(highest, model.flushed_start), (
        f"the log starts at {log.log_start_offset}, not within {model.flushed_start} to {highest}"
    )
    model.truncate(log.log_end_offset)
    model.start = model.may_start_at = log.log_start_offset
    model.acknowledged_end = model.end
    check_all(log, model, None)


def check_all(log: Log, model: Model, now_ms: int | None) -> None:
    assert (log.log_start_offset, log.log_end_offset) == (model.start, model.end)
    content = read_log(log)
    check_records(content, model, log)
    check_producers(log, model)
    check_transactions(log, content, model)
    check_lookups(log, content)
    if now_ms is not None:
        check_latest(content, model, now_ms, log)
    sizes = [segment.size_bytes for segment in log.segments]
    assert log.size_bytes == sum(sizes)
    bases = log.segments.base_offsets
    assert bases == sorted(set(bases))


def check_records(content: LogContent, model: Model, log: Log) -> None:
    for offset, record in content.records.items():
        entry = model.entries[offset]
        assert same(record, entry), f"{record} at {offset}, not {entry}"
    complete_from = max(model.start, model.clean_to)
    there = {offset for header in content.batches for offset in range(header.base_offset, header.next_offset)}
    for entry in model.in_order(complete_from):
        assert entry.offset in there, f"{entry} is missing"
        assert entry.is_marker or entry.offset in content.records, f"{entry} is missing from its batch"


def same(record: Record, entry: Entry) -> bool:
    key = None if record.key is None else record.key.decode()
    value = None if record.value is None else record.value.decode()
    return (key, value, record.timestamp) == (entry.key, entry.value, entry.timestamp)


def check_producers(log: Log, model: Model) -> None:
    for pid in {entry.pid for entry in model.entries.values()} - {-1}:
        last = model.last_of_producer(pid)
        if last is None or last.offset < model.start:
            continue
        state = log.producer_state.producers.get(pid)
        assert state is not None, f"producer {pid} is forgotten: {last}"
        expected = last.sequence + last.batch[1] - last.batch[0]
        assert state.last_sequence == expected, f"producer {pid} is at {state.last_sequence}, not {expected}: {last}"
    # A transaction of which nothing is left may be forgotten by whoever finds its producer in the records.
    unstable = [first_unstable(model, from_offset) for from_offset in (0, model.start)]
    assert log.first_unstable_offset in unstable, f"unstable from {log.first_unstable_offset}, not {unstable}"


def first_unstable(model: Model, from_offset: int) -> int | None:
    first = min(model.open_transactions(from_offset).values(), default=None)
    return None if first is None else max(first, model.start)


def check_transactions(log: Log, content: LogContent, model: Model) -> None:
    """Checks that a consumer leaves out exactly the records of aborted transactions."""
    aborted = model.aborted()
    ranges = log.aborted_transactions(model.start, model.end)
    for offset in content.records:
        entry = model.entries[offset]
        if entry.transactional:
            left_out = any(
                one.producer_id == entry.pid and one.first_offset <= offset <= one.last_offset for one in ranges
            )
            assert left_out == (offset in aborted), f"{entry}: taken for {'aborted' if left_out else 'committed'}"


def check_lookups(log: Log, content: LogContent) -> None:
    """Checks look-ups by time against the existing records."""
    times = {offset: record.timestamp for offset, record in content.records.items()}
    times.update(
        (one.base_offset, one.max_timestamp) for one in content.batches if one.is_control and one.records_count
    )
    stamps = sorted(set(times.values()))
    for stamp in {*stamps[:1], *stamps[-1:], *stamps[len(stamps) // 2 :][:1]}:
        first = min(offset for offset, time_ms in times.items() if time_ms >= stamp)
        looked_up = searched(partial(log.offset_for_timestamp, stamp))
        assert looked_up is not None, f"nothing at {stamp}, but offset {first} is"
        assert looked_up.offset == first, f"{looked_up} for {stamp}, not {first}"


def check_latest(content: LogContent, model: Model, now_ms: int, log: Log) -> None:
    """Checks that every key has its last value; only a tombstone may be missing, once its time is over."""
    aborted = model.aborted()
    visible: dict[str, Entry] = {}
    for offset in sorted(content.records):
        entry = model.entries[offset]
        if offset not in aborted and entry.key is not None:
            visible[entry.key] = entry
    latest = model.latest()
    for key, entry in latest.items():
        if entry.value is None and key not in visible:
            assert may_be_gone(entry, model), f"{entry} is gone too early"
            continue
        assert visible.get(key) == entry, f"{key}: {visible.get(key)}, not {entry}"
    assert visible.keys() <= latest.keys()


def may_be_gone(tombstone: Entry, model: Model) -> bool:
    """True if two cleanings saw the tombstone, the second after delete.retention.ms."""
    times = [time_ms for time_ms, end_offset in model.cleanings if end_offset > tombstone.offset]
    return len(times) > 1 and max(times) >= min(times) + model.least_delete_retention_ms
