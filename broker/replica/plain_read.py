"""The read that nearly all reads are: committed batches in memory, of a partition where no transaction is open.

Whatever is unusual is found without anything having been changed, and left to `Partition.fetch` and its callers.
"""

from __future__ import annotations

from librt.strings import read_i32_be

from broker.replica.partition import Partition
from protocol.errors import KafkaError
from protocol.records.batch import AT_LENGTH, LOG_OVERHEAD
from storage.segment.file import EMPTY


def is_quiet(partition: Partition, offset: int) -> bool:
    """Whether there is nothing to read from the offset on: known without an answer, which a consumer that keeps up
    would have made for each record only to be thrown away."""
    log = partition.log
    return offset == log.high_watermark and log.first_unstable_offset is None


def read(
    partition: Partition, offset: int, max_bytes: int, committed_only: bool, *, is_first: bool
) -> memoryview | None:
    """Batches from the offset up to the high watermark; None where there is anything else to say, or something to wait
    for."""
    log = partition.log
    end = log.high_watermark
    if not log.log_start_offset <= offset <= end or log.first_unstable_offset is not None:
        return None
    if offset == end:
        return EMPTY
    try:
        if max_bytes and log.cold_read(offset, max_bytes) is not None:
            return None
        if committed_only and any(not segment.txn_index.is_empty for segment in log.segments.since(offset)):
            return None
        records = log.view(offset, max_bytes, end, min_one=is_first)
    except (KafkaError, OSError):
        return None
    return records if is_first or not is_cut(records) else EMPTY


def is_cut(records: memoryview) -> bool:
    """Whether not even the first batch is whole."""
    if len(records) < LOG_OVERHEAD:
        return True
    length: int = read_i32_be(bytes(records[:LOG_OVERHEAD]), AT_LENGTH)
    return len(records) < LOG_OVERHEAD + length
