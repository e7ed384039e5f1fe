"""Asks the controller for the ISRs that the leaders here propose, and applies its decisions.

Source: kafka.server.DefaultAlterPartitionManager.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from broker.clock import Clock, pause
from broker.logging import get_logger
from broker.replica.partition import Partition
from broker.replica.replicas import Replicas
from coordinator.cluster.controller import Controller
from coordinator.replication.isr import Isr
from coordinator.replication.isr_changes import (
    CommittedIsr,
    IsrChange,
    IsrChanges,
    Verdict,
    decided,
    is_pending,
    is_worth_a_retry,
    proposed_change,
)
from coordinator.replication.roles import Leading
from protocol.backoff import Backoff
from protocol.errors import KafkaError
from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

BACKOFF: Final = Backoff(initial_ms=50, max_ms=1_000)
"""Pause before a failed request, or a request whose error allows a retry, is sent again. The first is as short as
Kafka's.
"""

AlterPartition: TypeAlias = Callable[[AlterPartitionRequest], Awaitable[AlterPartitionResponse]]
"""Sends an AlterPartition request. Raises KafkaError if its outcome is unknown, or the response has a top-level
error.
"""

logger = get_logger(__name__)


def altered_by(controller: Controller) -> AlterPartition:
    """Returns the function that sends AlterPartition to a controller."""
    return lambda request: controller.submit(request, AlterPartitionResponse)


class AlterPartitionManager:
    """The ISR changes that wait for the controller: one at a time for each partition, one request at a time for all."""

    def __init__(
        self,
        replicas: Replicas,
        broker_id: int,
        broker_epoch: Callable[[], int],
        alter: AlterPartition,
        clock: Clock,
        draw: Callable[[], float],
    ) -> None:
        """`draw` returns random numbers from 0 up to 1."""
        self._replicas = replicas
        self._broker_epoch = broker_epoch
        self._alter = alter
        self._clock = clock
        self._draw = draw
        self.shrinks = 0
        """Number of committed changes that removed a follower, since the start."""
        self.expands = 0
        """Number of committed changes that added a follower, since the start."""
        self.failed = 0
        """Number of changes that the controller rejected."""
        self._changes = IsrChanges(broker_id)
        self._sending: asyncio.Task[None] | None = None

    def propose(self, partition: Partition, isr: Isr) -> None:
        """Makes the leader wait for the change, and sends it. Does nothing if an earlier change of the partition isn't
        answered yet, because its leader will propose again for the same reason. Changes that are proposed in one
        turn of the event loop are sent together.
        """
        role = partition.role
        assert isinstance(role, Leading)
        change = proposed_change(partition.name, partition.topic_id, role, isr, self._broker_epoch())
        if not self._changes.add(change):
            return
        logger.info(
            "proposing in-sync replicas",
            partition=str(partition.name),
            isr=sorted(isr.proposed),
            instead_of=sorted(isr.committed),
            high_watermark=partition.high_watermark,
            end=partition.log_end_offset,
        )
        partition.become(role.with_isr(isr), self._clock.now_ms())
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def stop(self) -> None:
        """Sends no more requests."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait([self._sending])

    async def _send(self) -> None:
        failures = 0
        while (request := self._changes.next_request(self._broker_epoch(), self._is_pending)) is not None:
            try:
                failures = 0 if await self._is_settled_by(request) else failures + 1
            except Exception as error:  # a bug must not end the changes of ISRs
                logger.error("changes of in-sync replicas failed", exc_info=error)
                self._changes.failed()
                failures += 1
            if failures:
                await pause(self._clock, BACKOFF.delay_ms(failures, self._draw()))

    async def _is_settled_by(self, request: AlterPartitionRequest) -> bool:
        """True once every change of the request is decided; otherwise the undecided changes are sent again."""
        try:
            response = await self._alter(request)
        except KafkaError as error:
            self._changes.failed()
            logger.warning(
                "changes of in-sync replicas were not accepted", reason=f"{error.code.name}: {error.message}"
            )
            return False
        verdicts = self._changes.answered(response)
        for change, verdict in verdicts:
            self._count(change, verdict)
        again = [change for change, verdict in verdicts if self._is_open_after(change, verdict)]
        for change in again:
            self._changes.add(change)
        return not again and len(verdicts) == sum(len(topic.partitions) for topic in request.topics)

    def _count(self, change: IsrChange, verdict: Verdict) -> None:
        if not isinstance(verdict, CommittedIsr):
            self.failed += 1
        elif change.expands:
            self.expands += 1
        else:
            self.shrinks += 1

    def _is_open_after(self, change: IsrChange, verdict: Verdict) -> bool:
        """Applies the controller's verdict to the leader. True if the leader still waits for the same change, and may
        retry.
        """
        partition = self._waiting(change)
        if partition is None:
            return False
        role = partition.role
        assert isinstance(role, Leading)
        after = decided(role, change, verdict)
        if after is not role:
            has_left = isinstance(verdict, CommittedIsr) and not change.expands
            tell = logger.warning if has_left else logger.info  # operators must see that a replica left
            tell("in-sync replicas", partition=str(change.name), isr=sorted(after.isr.committed))
            partition.become(after, self._clock.now_ms())
            return False
        return is_worth_a_retry(verdict)

    def _is_pending(self, change: IsrChange) -> bool:
        return self._waiting(change) is not None

    def _waiting(self, change: IsrChange) -> Partition | None:
        """Returns the partition whose leader waits for the change; None if no leader on this broker does."""
        partition = self._replicas.topic(change.name.topic).get(change.name.partition)
        is_same = partition is not None and partition.topic_id == change.topic_id
        return partition if partition is not None and is_same and is_pending(partition.role, change) else None
