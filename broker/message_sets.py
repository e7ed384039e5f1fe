"""A Fetch before version 4: what it found, as the message sets that its client reads; by a thread, in bounded memory.

All sets of an answer come from one budget of bytes, and partitions that it does not reach come with the next Fetch. A
batch that is more than the whole of it is shown as one that does not fit, which its consumer tells of.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from broker.clock import Deadline
from broker.exchange.sleeper import Sleeper
from broker.fetch.fetch import Fetch, Outcome
from broker.fetch.partition import FetchedPartition
from broker.requests.settling import RecordWork
from protocol.errors import KafkaError
from protocol.records.compression import TooLarge
from protocol.records.legacy import OVERFLOW_MESSAGE, ConversionBudget, down_convert
from protocol.records.message_set import MAGIC_V0, MAGIC_V1
from protocol.records.record import MAX_INFLATED_SIZE

FIRST_TIMESTAMP_VERSION = 2
"""Before it, messages are of magic 0."""


async def serve_messages(fetch: Fetch, record_work: RecordWork) -> Outcome:
    """As message sets. Nearly no client asks for them, so that each has a coroutine, and its conversion a thread."""
    request = fetch.request
    deadline = Deadline(fetch.fetches.clock, request.max_wait_ms)
    while True:
        gathered = fetch.gather()
        if gathered.cold is not None:
            await fetch.fetches.disk_work.read_ahead(gathered.cold)
            gathered = fetch.gather(True)
        if fetch.is_enough(gathered) or deadline.is_over:
            break
        waiter = Sleeper(request.min_bytes - gathered.size_bytes, committed_only=request.committed_only)
        await waiter.woken_by(gathered.watched, deadline)
    if gathered.size_bytes:
        await record_work.call(partial(convert, gathered.partitions, request.version))
    return fetch.answer(gathered)


def convert(answers: Iterable[FetchedPartition], version: int) -> None:
    """Puts message sets in the place of batches, or the errors that those make."""
    magic = MAGIC_V0 if version < FIRST_TIMESTAMP_VERSION else MAGIC_V1
    budget = ConversionBudget()
    for answer in answers:
        if answer.records:
            convert_one(answer, magic, budget)


def convert_one(answer: FetchedPartition, magic: int, budget: ConversionBudget) -> None:
    is_first = budget.left == MAX_INFLATED_SIZE
    try:
        answer.records = down_convert(answer.records, magic, answer.fetch_offset, budget)
    except TooLarge:
        answer.records = OVERFLOW_MESSAGE if is_first else b""
    except KafkaError as error:
        answer.fail(error)
