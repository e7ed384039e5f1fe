"""Appends a batch that the broker itself writes to a partition, whichever broker leads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.coordinators.environment import Environment
from broker.replica.commits import committed
from protocol.types import TopicPartition

if TYPE_CHECKING:
    from broker.coordinators.other_leaders import OtherLeaders


async def append_at_leader(
    environment: Environment,
    other_leaders: Callable[[], OtherLeaders],
    target: TopicPartition,
    encoded: bytearray,
    now_ms: int,
) -> None:
    """Appends a batch, and returns once it is committed. Raises KafkaError."""
    leader_id = environment.leader_elsewhere(target)
    topic = environment.image.topic(target.topic)
    if leader_id is not None and topic is not None:
        await other_leaders().produce(leader_id, target, topic.topic_id, encoded)
        return
    partition = environment.replicas.leader(*target)
    appended = partition.append(memoryview(encoded), now_ms, for_all=True)
    await committed(partition, appended.last_offset + 1, environment.config.request_timeout_ms)
