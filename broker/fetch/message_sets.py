"""Answers a Fetch before version 4, whose client reads message sets: a thread converts the batches, in bounded memory.

All message sets of an answer share one budget of bytes; partitions that exceed it are returned by the next Fetch. A
batch larger than the whole budget becomes an oversized message, which the consumer reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from broker.fetch.fetch import Fetch, Outcome
from broker.fetch.in_turns import answered, read_enough
from broker.fetch.partition import FetchedPartition
from broker.request.record_work import RecordWork
from protocol.errors import KafkaError
from protocol.records.compression import TooLarge
from protocol.records.legacy import OVERFLOW_MESSAGE, ConversionBudget, down_convert
from protocol.records.message_set import MAGIC_V0, MAGIC_V1
from protocol.records.record import MAX_INFLATED_SIZE

FIRST_TIMESTAMP_VERSION = 2
"""First version with timestamps; earlier versions read messages of magic 0."""


async def serve_messages(fetch: Fetch, record_work: RecordWork) -> Outcome:
    """Returns the answer to a fetch with message sets. It is a coroutine, because few clients still send such
    fetches.
    """
    result = await read_enough(fetch)
    if result.size_bytes:
        counts = await record_work.call(partial(convert, result.partitions, fetch.request.version))
        for answer, count in zip(result.partitions, counts, strict=True):
            if count and answer.replica is not None:
                answer.replica.traffic.fetch_conversions += count
    return await answered(fetch, result)


def convert(answers: Sequence[FetchedPartition], version: int) -> list[int]:
    """Replaces the batches of the answers by message sets, or by the errors of their conversion. Returns the number of
    records converted for each answer.
    """
    magic = MAGIC_V0 if version < FIRST_TIMESTAMP_VERSION else MAGIC_V1
    budget, counts = ConversionBudget(), list[int]()
    for answer in answers:
        before = budget.converted
        if answer.records:
            convert_one(answer, magic, budget)
        counts.append(budget.converted - before)
    return counts


def convert_one(answer: FetchedPartition, magic: int, budget: ConversionBudget) -> None:
    is_first = budget.left == MAX_INFLATED_SIZE
    try:
        answer.records = down_convert(answer.records, magic, answer.fetch_offset, budget)
    except TooLarge:
        answer.records = OVERFLOW_MESSAGE if is_first else b""
    except KafkaError as error:
        answer.fail(error)
