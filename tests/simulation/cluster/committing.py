"""A group without members in the cluster. Its offsets are committed by number, and acknowledged commits must not be
lost."""

from __future__ import annotations

from protocol.errors import ErrorCode, error_code
from protocol.messages.offset_commit import (
    OffsetCommitResponse,
)
from protocol.messages.offset_fetch import OffsetFetchResponse
from protocol.types import TopicPartition
from tests.group_requests import offset_commit, offset_fetch
from tests.simulation.cluster.clients import Client, NoAnswer
from tests.simulation.cluster.history import Breach

BY_NAME = 8
OFFSETS = TopicPartition("__consumer_offsets", 0)


async def commit_offsets(client: Client, partition: TopicPartition) -> None:
    """Commits increasing offsets, and fetches the last one: no acknowledged commit may be lost."""
    history, acknowledged, number = client.history, -1, 0
    unanswered: set[int] = set()
    """Commits without an answer. They may still arrive later over an abandoned connection, because the broker can't
    distinguish an old commit from a new one."""
    while True:
        try:
            coordinator = await client.coordinator(client.name)
            if not client.world.is_calm:
                number += 1
                unanswered.add(number)
                if await _commit(client, coordinator, partition, number):
                    acknowledged = number
                unanswered.discard(number)
            fetched = await _fetched(client, coordinator)
        except NoAnswer:
            await client.pause()
            continue
        if fetched is not None:
            history.counts["offsets fetched"] += 1
            history.note(client.name, number, fetched)
            is_former = client.world.leader_of(OFFSETS) != coordinator  # and does not know it yet
            if fetched < acknowledged and fetched not in unanswered and not is_former:
                history.breach(Breach.BACK, f"{client.name}: offset {acknowledged} was committed, and {fetched} is")
        await client.pause()


async def _commit(client: Client, coordinator: int, partition: TopicPartition, number: int) -> bool:
    """Returns True if an offset was acknowledged. Raises NoAnswer."""
    request = offset_commit(client.name, {partition.topic: {partition.partition: number}})
    answer = await client.ask(coordinator, request, OffsetCommitResponse, BY_NAME)
    code = error_code(answer.topics[0].partitions[0].error_code)
    client.history.counts[f"commit {code.name}"] += 1
    return code is ErrorCode.NONE


async def _fetched(client: Client, coordinator: int) -> int | None:
    """Returns the committed offset, -1 for none; None if the coordinator returns an error. Raises NoAnswer."""
    request = offset_fetch(client.name, stable=True)
    (group,) = (await client.ask(coordinator, request, OffsetFetchResponse, BY_NAME)).groups
    if group.error_code:
        return None
    return next((one.committed_offset for topic in group.topics for one in topic.partitions), -1)
