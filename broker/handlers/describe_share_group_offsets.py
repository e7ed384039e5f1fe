"""DescribeShareGroupOffsets (90): describes the start offsets of groups' share partitions (KIP-932).

v1 adds the lag: the records whose delivery is not complete (KIP-1226). A group without a list of topics stands for all
topics that have state.
"""

from __future__ import annotations

from functools import partial
from itertools import islice

from broker.dispatch.api import SHARE_GROUPS, Api, Entries, Handle
from broker.dispatch.call import Call
from broker.dispatch.rules import add_rejections, as_requested, denial, of_group, own, split
from broker.request.authorisation import DESCRIBE_GROUP, DESCRIBE_TOPIC
from broker.request.turns import Turns
from broker.shards.translations import seen_by_client
from broker.share.acknowledging import code_of, message_of
from broker.share.administration import OffsetDescription, describe_offset
from coordinator.group.share.offsets import initialized_partitions
from coordinator.share.key import ShareKey
from protocol.errors import KafkaError
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from protocol.types import NO_UUID, Uuid


async def describe_share_group_offsets(
    call: Call[DescribeShareGroupOffsetsRequest],
) -> DescribeShareGroupOffsetsResponse:
    turns = call.turns()
    groups = await turns.map_together(partial(one_group, call, turns), call.request.groups)
    return DescribeShareGroupOffsetsResponse(groups=groups)


async def one_group(
    call: Call[DescribeShareGroupOffsetsRequest], turns: Turns, described_group: DescribeShareGroupOffsetsRequestGroup
) -> DescribeShareGroupOffsetsResponseGroup:
    group_id, error = described_group.group_id, None
    topics: list[DescribeShareGroupOffsetsResponseTopic] = []
    try:
        requested = await topics_of(call, described_group)
        keys = [ShareKey(group_id, topic_id, index) for _, topic_id, indexes in requested for index in indexes]
        call.count(len(keys))
        answers = iter(await turns.map_together(partial(describe_partition, call), keys))
        topics += (
            DescribeShareGroupOffsetsResponseTopic(
                topic_name=name, topic_id=topic_id, partitions=[*islice(answers, len(indexes))]
            )
            for name, topic_id, indexes in requested
        )
    except KafkaError as rejection:
        error = seen_by_client(rejection)
    return DescribeShareGroupOffsetsResponseGroup(
        group_id=group_id, topics=topics, error_code=code_of(error), error_message=message_of(error)
    )


async def topics_of(
    call: Call[DescribeShareGroupOffsetsRequest], described_group: DescribeShareGroupOffsetsRequestGroup
) -> list[tuple[str, Uuid, list[int]]]:
    """Returns topics by name and id, with their partitions; each existing topic once. Raises KafkaError."""
    image = call.broker.image
    if described_group.topics is None:
        initialized = await call.broker.groups.submit(
            described_group.group_id, initialized_partitions, described_group.group_id, None
        )
        named = ((image.topic_by_id(topic_id), partitions) for topic_id, partitions in initialized.items())
        return [(topic.name, topic.topic_id, sorted(indexes)) for topic, indexes in named if topic is not None]
    absent: list[tuple[str, Uuid, list[int]]] = []
    existing: dict[tuple[str, Uuid], dict[int, None]] = {}
    for requested in described_group.topics:
        topic = image.topic(requested.topic_name)
        if topic is None:
            absent.append((requested.topic_name, NO_UUID, requested.partitions))
        else:
            existing.setdefault((topic.name, topic.topic_id), {}).update(dict.fromkeys(requested.partitions))
    return [*absent, *((name, topic_id, list(indexes)) for (name, topic_id), indexes in existing.items())]


async def describe_partition(
    call: Call[DescribeShareGroupOffsetsRequest], key: ShareKey
) -> DescribeShareGroupOffsetsResponsePartition:
    is_absent = key.topic_id == NO_UUID
    described = OffsetDescription() if is_absent else await describe_offset(call.broker.share_groups, key)
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=key.partition,
        start_offset=described.start_offset,
        leader_epoch=described.leader_epoch,
        lag=described.lag,
        error_code=code_of(described.error),
        error_message=message_of(described.error),
    )


async def permitted_offsets(
    call: Call[DescribeShareGroupOffsetsRequest], handle: Handle
) -> DescribeShareGroupOffsetsResponse:
    """Authorizes the client for each group, then for each of its topics; without a list of topics, denied topics are
    left out."""
    request = call.request
    requested = request.groups
    permitted, denied = await split(call, DESCRIBE_GROUP, requested, of_group)
    denied_topics = [await take_denied(call, group) for group in permitted]
    request.groups = permitted
    response: DescribeShareGroupOffsetsResponse = await handle(call)
    for answered, topics in zip(response.groups, denied_topics, strict=True):
        names = await call.permitted(DESCRIBE_TOPIC, (topic.topic_name for topic in answered.topics), quiet=True)
        answered.topics = [topic for topic in answered.topics if topic.topic_name in names]
        if not answered.error_code:
            await add_rejections(call, answered, "topics", topics, denial(DESCRIBE_TOPIC))
    await add_rejections(call, response, "groups", denied, denial(DESCRIBE_GROUP))
    response.groups = as_requested(requested, [*permitted, *denied], response.groups)
    return response


async def take_denied(
    call: Call[DescribeShareGroupOffsetsRequest], group: DescribeShareGroupOffsetsRequestGroup
) -> list[DescribeShareGroupOffsetsRequestTopic]:
    """Removes the topics that the client may not describe from a group, and returns them."""
    if group.topics is None:
        return []
    group.topics, denied = await split(call, DESCRIBE_TOPIC, group.topics, lambda topic: topic.topic_name)
    return denied


API = Api(
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    describe_share_group_offsets,
    authorize=own(permitted_offsets, DESCRIBE_GROUP, DESCRIBE_TOPIC),
    protocol=SHARE_GROUPS,
    entries=(
        Entries("groups", "groups", Entries("topics", "topics", Entries("partitions", "partitions"), key="topic_name")),
    ),
    explains=True,
)
