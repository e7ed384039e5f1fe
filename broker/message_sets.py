"""A Fetch before version 4: what it found, as the message sets that its client reads; by a thread, in bounded memory.

All sets of an answer come from one budget of bytes, and partitions that it does not reach come with the next Fetch. A
batch that is more than the whole of it is shown as one that does not fit, which its consumer tells of.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Protocol, TypeVar

from broker.clock import Deadline
from broker.exchange.sleeper import Sleeper
from broker.replica.partition import Partition
from broker.replica.replica import READ_COMMITTED
from broker.requests.call import Call
from broker.requests.fetch_sessions import FetchedPartition
from protocol.errors import KafkaError
from protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from protocol.records.compression import TooLarge
from protocol.records.legacy import OVERFLOW_MESSAGE, ConversionBudget, down_convert
from protocol.records.message_set import MAGIC_V0, MAGIC_V1
from protocol.records.record import MAX_INFLATED_SIZE
from protocol.types import Buffer
from storage.segment.cold import ColdRead

G = TypeVar("G", bound="Gathered")

FIRST_TIMESTAMP_VERSION = 2
"""Before it, messages are of magic 0."""

Answers = list[tuple[FetchedPartition, PartitionData]]


class Gathered(Protocol):
    """What one pass over the partitions of a fetch has found."""

    answers: Answers
    cold: list[ColdRead]
    size_bytes: int
    watched: list[Partition]


class Plan(Protocol[G]):
    """What a fetch asks for, which can be gathered over and over."""

    call: Call[FetchRequest]

    def gather(self) -> G: ...

    def gather_warm(self) -> G: ...

    def is_enough(self, gathered: G) -> bool: ...

    def response(self, gathered: G) -> FetchResponse: ...


async def fetch_messages(plan: Plan[G], gathered: G) -> FetchResponse:
    """As message sets. Nearly no client asks for them, so that each has a coroutine, and its conversion a thread."""
    call = plan.call
    deadline = Deadline(call.broker.clock, call.request.max_wait_ms)
    while True:
        if gathered.cold:
            await call.broker.disk_work.read_ahead(gathered.cold)
            gathered = plan.gather_warm()
        if plan.is_enough(gathered) or deadline.is_over:
            break
        missing_bytes = call.request.min_bytes - gathered.size_bytes
        waiter = Sleeper(missing_bytes, committed_only=call.request.isolation_level == READ_COMMITTED)
        await waiter.woken_by(gathered.watched, deadline)
        gathered = plan.gather()
    if any(data.records for _, data in gathered.answers):
        gathered.answers = await call.broker.record_work.call(partial(as_messages, gathered.answers, call.version))
    return plan.response(gathered)


def as_messages(answers: Iterable[tuple[FetchedPartition, PartitionData]], version: int) -> Answers:
    """The same with message sets for batches, or with the errors that those make."""
    magic = MAGIC_V0 if version < FIRST_TIMESTAMP_VERSION else MAGIC_V1
    budget = ConversionBudget()
    return [(wanted, _converted(wanted, data, magic, budget)) for wanted, data in answers]


def _converted(wanted: FetchedPartition, data: PartitionData, magic: int, budget: ConversionBudget) -> PartitionData:
    if not data.records:
        return data
    is_first = budget.left == MAX_INFLATED_SIZE
    records: Buffer
    try:
        records = down_convert(data.records, magic, wanted.fetch_offset, budget)
    except TooLarge:
        records = OVERFLOW_MESSAGE if is_first else b""
    except KafkaError as error:
        return PartitionData(
            partition_index=data.partition_index, error_code=error.code, high_watermark=-1, records=b""
        )
    data.records = records
    return data
