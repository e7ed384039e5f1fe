"""Requests high watermarks from other leaders, for the lag of groups on partitions without a replica here.

A scrape waits at most WITHIN_S for all answers, and continues without the missing ones. A leader gets no new request
while one is unanswered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from broker.dispatch.broker import Broker
from broker.shards.high_watermarks import high_watermarks
from client.errors import PeerError
from protocol.errors import KafkaError, ProtocolError
from protocol.types import TopicPartition

WITHIN_S: Final = 1.0

AT_ONCE: Final = 250
"""Maximum number of partitions in a request, which each broker handles in less than a millisecond."""

MAX_ASKED_FOR: Final = 10_000
"""Maximum number of partitions in a scrape."""

Ends = Mapping[TopicPartition, int]


class EndsElsewhere:
    """Requests high watermarks from other brokers, from each for one scrape at a time."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._requests: dict[int, asyncio.Task[Ends]] = {}

    def close(self) -> None:
        """Cancels all requests."""
        for task in self._requests.values():
            task.cancel()

    async def look(self, names: Iterable[TopicPartition]) -> Ends:
        """Returns the high watermarks of the partitions whose leaders answered in time."""
        by_leader: dict[int, list[TopicPartition]] = {}
        for _, name in zip(range(MAX_ASKED_FOR), names, strict=False):
            leader_id = self._broker.share_groups.environment.leader_elsewhere(name)
            if leader_id is not None:
                by_leader.setdefault(leader_id, []).append(name)
        begun = [self._begin(leader_id, of_leader) for leader_id, of_leader in by_leader.items()
                 if leader_id not in self._requests]  # fmt: skip
        if not begun:
            return {}
        done, _ = await asyncio.wait(begun, timeout=WITHIN_S)
        return {name: end for task in done for name, end in task.result().items()}

    def _begin(self, leader_id: int, names: list[TopicPartition]) -> asyncio.Task[Ends]:
        task = self._requests[leader_id] = asyncio.get_running_loop().create_task(self._ask(leader_id, names))
        task.add_done_callback(lambda _: self._requests.pop(leader_id, None))
        return task

    async def _ask(self, leader_id: int, names: list[TopicPartition]) -> Ends:
        ends: dict[TopicPartition, int] = {}
        for start in range(0, len(names), AT_ONCE):
            batch = names[start : start + AT_ONCE]
            try:
                answers = await high_watermarks(self._broker.anywhere, leader_id, batch)
            except (PeerError, ProtocolError, KafkaError):
                break  # the broker is gone, or no longer leads: the next scrape asks the new leader
            ends.update((name, end) for name, end in zip(batch, answers, strict=True) if isinstance(end, int))
        return ends
