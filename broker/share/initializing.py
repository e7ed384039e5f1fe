"""Initializes the state of share partitions: the persister writes it, and the group records that it exists.

Source: GroupCoordinatorService.persisterInitialize (KIP-932).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from broker.logging import get_logger
from broker.shards.groups import GroupCoordinator
from broker.shards.translations import seen_by_client
from broker.share.persister import Persister
from broker.share.state_operations import InitializeState
from coordinator.group.share.initialization import Initialize, initialized, uninitialized
from coordinator.share.key import ShareKey
from protocol.errors import KafkaError

logger = get_logger(__name__)


async def initialize(
    persister: Persister, coordinator: GroupCoordinator, initialization: Initialize
) -> Mapping[ShareKey, KafkaError]:
    """Initializes the state and records it in the group; returns the errors."""
    keys = [
        (ShareKey(initialization.group_id, topic_id, index), offset)
        for topic_id, partitions in initialization.offsets.items()
        for index, offset in partitions.items()
    ]
    results = await asyncio.gather(
        *(persister.submit(InitializeState(key, initialization.state_epoch, offset)) for key, offset in keys),
        return_exceptions=True,
    )
    failed: dict[ShareKey, KafkaError] = {}
    for (key, _), result in zip(keys, results, strict=True):
        if isinstance(result, KafkaError):
            failed[key] = seen_by_client(result)
        elif result is not None:
            raise result
    if failed:
        logger.warning(
            "state of share partitions not initialized",
            group=initialization.group_id,
            reason=str(next(iter(failed.values()))),
        )
    decide = uninitialized if failed else initialized
    try:
        await coordinator.submit(initialization.group_id, decide, initialization, None)
    except KafkaError as error:
        logger.warning("share group did not store its state", group=initialization.group_id, reason=str(error))
        failed.update((key, error) for key, _ in keys)
    return failed
