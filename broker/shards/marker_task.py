"""A task beside each transaction shard, which writes the markers of its decided transactions, here and elsewhere.

Source: TransactionMarkerChannelManager, and the errors of TransactionMarkerRequestCompletionHandler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from broker.clock import pause
from broker.logging import get_logger
from broker.shards.anywhere import as_kafka_error
from broker.shards.environment import Environment
from broker.shards.marker_requests import MARKERS, MarkerRequest
from broker.shards.markers import Marker, MarkerWriter, marker_of
from coordinator.engine.result import Ticket
from coordinator.group.records import EndTransaction
from coordinator.transaction.settings import RETRY_MS
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition

if TYPE_CHECKING:
    from coordinator.transaction.markers import Markers, Written
    from coordinator.transaction.shard import TransactionResult, TransactionShard

A = TypeVar("A")

OVER: Final = frozenset(
    {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION}
)
"""Errors of a partition that no longer needs the marker: a newer epoch of the producer has ended the transaction there,
as when an administrator aborts it; or no transaction can have been written to it."""

logger = get_logger(__name__)


class Submit(Protocol):
    """Decides in the shard: (shard, ticket, now_ms) → Result. Returns the answer's future. Raises KafkaError."""

    def __call__(
        self, decide: Callable[[TransactionShard, Ticket[A], int], TransactionResult]
    ) -> asyncio.Future[A]: ...


class ShardSeat(NamedTuple):
    """A coordinator's shard as its marker task uses it."""

    coordinator_epoch: int
    """The leader epoch of its partition, by which partitions detect an outdated coordinator."""
    submit: Submit
    is_hosted: Callable[[], bool]


class MarkerTask:
    """Writes the markers of one shard, until the shard is unloaded."""

    def __init__(self, seat: ShardSeat, environment: Environment, writer: MarkerWriter) -> None:
        self._seat = seat
        self._environment = environment
        self._writer = writer
        self._under_way: set[str] = set()
        self._reports: set[asyncio.Task[None]] = set()
        self._problems: dict[tuple[str, TopicPartition], ErrorCode] = {}
        """The last error of each failing marker: it is logged once, not at every try."""

    async def run(self) -> None:
        """Asks the shard for markers and writes them, until the shard is unloaded."""
        try:
            await self._run()
        finally:
            for report in self._reports:
                report.cancel()

    async def _run(self) -> None:
        seat = self._seat
        done: dict[str, list[TopicPartition]] = {}
        while seat.is_hosted():
            try:
                work = await self._next(done)
            except KafkaError as error:
                if error.code is ErrorCode.NOT_COORDINATOR:
                    return
                await pause(self._environment.clock, RETRY_MS)
                continue
            done = {}
            for markers in work:
                codes, waiting = self._begin(markers)
                if waiting:
                    self._under_way.add(markers.transactional_id)
                    self._spawn(self._report(markers, codes, waiting))
                elif (written := self._settled(markers, codes)) is not None:
                    done[markers.transactional_id] = written

    def _next(self, done: Written) -> asyncio.Future[list[Markers]]:
        """Reports written markers, and asks for the next. Raises KafkaError."""
        under_way = frozenset(self._under_way)
        return self._seat.submit(lambda shard, ticket, now_ms: shard.write_on(done, under_way, ticket, now_ms))

    def _spawn(self, report: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(report)
        self._reports.add(task)
        task.add_done_callback(self._reports.discard)

    def _begin(self, markers: Markers) -> tuple[dict[TopicPartition, ErrorCode], dict[TopicPartition, Awaitable[None]]]:
        """Appends a transaction's markers to its partitions here, and sends those for other brokers. Returns the codes
        that are known already, and the markers to wait for."""
        epoch = self._seat.coordinator_epoch
        record = EndTransaction(markers.producer_id, markers.epoch, markers.committed, epoch)
        marker = marker_of(record, markers.transaction_version, self._environment.clock.now_ms())
        codes: dict[TopicPartition, ErrorCode] = {}
        waiting: dict[TopicPartition, Awaitable[None]] = {}
        for name in markers.partitions:
            try:
                wait = self._begin_one(name, marker)
            except Exception as error:
                codes[name] = self._code_of(markers, name, error)
            else:
                if wait is None:
                    codes[name] = ErrorCode.NONE
                else:
                    waiting[name] = wait
        return codes, waiting

    def _begin_one(self, name: TopicPartition, marker: Marker) -> Awaitable[None] | None:
        """Appends or sends a marker. Returns an awaitable that ends once the marker is committed; None if it is
        committed already. The call and the awaitable raise KafkaError."""
        leader_id = self._environment.leader_elsewhere(name)
        if leader_id is None:
            return self._writer.begin(name, marker)
        request = MarkerRequest(marker.record, marker.transaction_version, name)
        return self._environment.anywhere().submit(leader_id, MARKERS, request)

    async def _report(
        self,
        markers: Markers,
        codes: dict[TopicPartition, ErrorCode],
        waiting: Mapping[TopicPartition, Awaitable[None]],
    ) -> None:
        """Reports markers to the shard once they are committed; meanwhile other transactions continue."""
        results = await asyncio.gather(*waiting.values(), return_exceptions=True)
        for name, result in zip(waiting, results, strict=True):
            codes[name] = ErrorCode.NONE if result is None else self._code_of(markers, name, result)
        written = self._settled(markers, codes)
        if written is None:
            return

        done = {markers.transactional_id: written}
        while self._seat.is_hosted():
            try:
                answer = self._submit_written(done)
                self._under_way.discard(markers.transactional_id)  # the shard has decided, and no longer counts it
                await answer
            except KafkaError as error:
                if error.code is ErrorCode.NOT_COORDINATOR:
                    return
                await pause(self._environment.clock, RETRY_MS)
            else:
                return

    def _submit_written(self, done: Written) -> asyncio.Future[None]:
        return self._seat.submit(lambda shard, ticket, now_ms: shard.markers_written(done, ticket, now_ms))

    def _code_of(self, markers: Markers, name: TopicPartition, error: BaseException) -> ErrorCode:
        """Returns the code of a marker that wasn't written, and will be tried again."""
        if not isinstance(error, Exception):
            raise error
        if not isinstance(error, KafkaError):
            logger.error(
                "marker not written", transactional_id=markers.transactional_id, partition=str(name), exc_info=error
            )
        return as_kafka_error(error).code

    def _settled(self, markers: Markers, codes: Mapping[TopicPartition, ErrorCode]) -> list[TopicPartition] | None:
        """Returns the partitions that have their marker, or no longer need it; the others are tried again. None if a
        partition knows a newer coordinator: this coordinator is outdated and ends no transaction."""
        transactional_id = markers.transactional_id
        written: list[TopicPartition] = []
        for name, code in codes.items():
            if code is ErrorCode.NONE or self._is_over(name, code):
                written.append(name)
                self._problems.pop((transactional_id, name), None)
            elif self._problems.get((transactional_id, name)) is not code:
                self._problems[transactional_id, name] = code
                logger.warning(
                    "marker not written", transactional_id=transactional_id, partition=str(name), reason=code.name
                )
        if ErrorCode.TRANSACTION_COORDINATOR_FENCED in codes.values():
            self._under_way.add(transactional_id)  # the shard no longer asks for these
            return None
        return written

    def _is_over(self, name: TopicPartition, code: ErrorCode) -> bool:
        """True if the transaction has ended in the partition without the marker, or the partition was deleted."""
        return code in OVER or self._environment.image.partition(name) is None
