"""The figures of `odradek topic analyze`: sizes, rates, keys and codecs of the records of a topic. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from cli.times import show_time
from commands.printing import Row
from protocol.records.batch import iter_batches, magic_at
from protocol.records.record import Record
from protocol.types import Buffer

MAX_KEYS = 100_000
"""Number of distinct keys of a partition up to which they are counted, so that the memory has a limit."""


class PartitionFigures:
    """The figures of one partition, while its records are read."""

    def __init__(self) -> None:
        self.records = self.value_bytes = self.key_bytes = self.keyless = self.tombstones = self.with_headers = 0
        self.sizes: Counter[int] = Counter()
        """The number of records by the size of key and value, rounded up to a power of two."""
        self.keys: set[int] | None = set()
        """The hashes of keys; None if there are more than MAX_KEYS."""
        self.first_ms: int | None = None
        self.last_ms: int | None = None
        self.batches: Counter[int] = Counter()
        """The number of batches by size."""
        self.codecs: Counter[str] = Counter()
        """The number of batches by codec."""
        self._next_batch = 0

    def add_batches(self, buffer: Buffer) -> None:
        """Counts the batches in the answer of a fetch. A batch that an earlier answer had is not counted again."""
        if not len(buffer) or magic_at(buffer) < 2:
            return
        for _, header in iter_batches(buffer):
            if header.base_offset >= self._next_batch and not header.is_control:
                self.batches[header.size_bytes] += 1
                self.codecs[header.compression.name.lower()] += 1
            self._next_batch = max(self._next_batch, header.next_offset)

    def add(self, record: Record) -> None:
        """Counts a record."""
        key, value = record.key, record.value
        self.records += 1
        self.key_bytes += len(key or b"")
        self.value_bytes += len(value or b"")
        self.sizes[_rounded(len(key or b"") + len(value or b""))] += 1
        self.tombstones += value is None
        self.with_headers += bool(record.headers)
        if key is None:
            self.keyless += 1
        elif self.keys is not None:
            self.keys.add(hash(bytes(key)))
            if len(self.keys) > MAX_KEYS:
                self.keys = None
        at_ms = record.timestamp
        self.first_ms = at_ms if self.first_ms is None else min(self.first_ms, at_ms)
        self.last_ms = at_ms if self.last_ms is None else max(self.last_ms, at_ms)


def summary(figures: Iterable[PartitionFigures]) -> Row:
    """Returns the row of one or more partitions. Rates are over the time between the first and the last timestamp; None
    if there is none."""
    listed = list(figures)
    records = sum(part.records for part in listed)
    bytes_ = sum(part.key_bytes + part.value_bytes for part in listed)
    sizes = sum((part.sizes for part in listed), Counter[int]())
    batches = sum((part.batches for part in listed), Counter[int]())
    codecs = sum((part.codecs for part in listed), Counter[str]())
    first_ms = min((part.first_ms for part in listed if part.first_ms is not None), default=None)
    last_ms = max((part.last_ms for part in listed if part.last_ms is not None), default=None)
    elapsed_s = None if first_ms is None or last_ms is None or last_ms <= first_ms else (last_ms - first_ms) / 1000
    stored = sum(size * count for size, count in batches.items())
    return {
        "records": records,
        "bytes": bytes_,
        "records_per_s": None if elapsed_s is None else round(records / elapsed_s, 1),
        "bytes_per_s": None if elapsed_s is None else round(bytes_ / elapsed_s),
        "average_bytes": round(bytes_ / records) if records else None,
        "half_under": _quantile(sizes, 0.5),
        "99_percent_under": _quantile(sizes, 0.99),
        "batches": batches.total(),
        "batch_bytes": round(stored / batches.total()) if batches else None,
        "batch_records": round(records / batches.total(), 1) if batches else None,
        "stored_share": round(stored / bytes_, 2) if bytes_ else None,
        "codecs": dict(codecs.most_common()),
        "keys": _distinct(listed),
        "keyless": sum(part.keyless for part in listed),
        "tombstones": sum(part.tombstones for part in listed),
        "with_headers": sum(part.with_headers for part in listed),
        "first": None if first_ms is None else show_time(first_ms),
        "last": None if last_ms is None else show_time(last_ms),
    }


def _distinct(figures: Sequence[PartitionFigures]) -> int | None:
    """Returns the number of distinct keys; None if a partition has too many to count. A key is in one partition, unless
    the topic has grown."""
    keys: set[int] = set()
    for part in figures:
        if part.keys is None:
            return None
        keys |= part.keys
    return len(keys)


def _rounded(size: int) -> int:
    return 1 << max(size - 1, 0).bit_length()


def _quantile(sizes: Counter[int], share: float) -> int | None:
    """Returns the smallest size that at least this share of the records don't exceed."""
    wanted, seen = share * sizes.total(), 0
    for size, count in sorted(sizes.items()):
        seen += count
        if seen >= wanted:
            return size
    return None
