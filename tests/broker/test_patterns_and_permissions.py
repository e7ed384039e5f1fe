"""Tests that a member of a consumer group gets, by a pattern, only topics that it may describe."""

from __future__ import annotations

import asyncio
from pathlib import Path

from broker.request.context import Principal
from protocol.acl import Operation, PatternType, Permission, Resource
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from tests.broker.doors import OPTIONS
from tests.broker.inprocess import LONG_S, Client, InProcess

ALICE = Principal("User", "alice")
GROUP = "readers"


def allowed(resource: Resource, name: str, operation: Operation) -> AclCreation:
    return AclCreation(
        resource_type=resource, resource_name=name, resource_pattern_type=PatternType.LITERAL,
        principal=str(ALICE), host="*", operation=operation, permission_type=Permission.ALLOW,
    )  # fmt: skip


async def beaten(client: Client, epoch: int, pattern: str | None = None) -> ConsumerGroupHeartbeatResponse:
    """Returns the answer to a heartbeat, which may subscribe with a pattern."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="member",
        member_epoch=epoch,
        rebalance_timeout_ms=10_000 if pattern is not None else -1,
        subscribed_topic_names=None,
        subscribed_topic_regex=pattern,
        topic_partitions=[] if pattern is not None else None,
    )
    return await client.ask(request, 1, ConsumerGroupHeartbeatResponse)


async def assigned(client: Client) -> set[bytes]:
    """Returns the ids of the topics assigned to a member that subscribes with a pattern for all topics."""
    async with asyncio.timeout(LONG_S):
        while (answer := await beaten(client, 0, ".*")).error_code:  # noqa: ASYNC110 (it loads meanwhile)
            await asyncio.sleep(0)
        while answer.assignment is None or not answer.assignment.topic_partitions:
            answer = await beaten(client, answer.member_epoch)
            assert not answer.error_code, answer
            await asyncio.sleep(0)
    return {topic.topic_id for topic in answer.assignment.topic_partitions}


async def test_a_pattern_matches_those_topics_of_which_one_may_know(tmp_path: Path) -> None:
    async with InProcess(tmp_path, OPTIONS) as broker:
        orders, _secret = await broker.create_topic("orders"), await broker.create_topic("secret")
        admin, alice = broker.client(), broker.client()
        alice.connection.principal = ALICE
        entries = [
            allowed(Resource.TOPIC, "orders", Operation.DESCRIBE),
            allowed(Resource.GROUP, GROUP, Operation.READ),
        ]
        answer = await admin.ask(CreateAclsRequest(creations=entries), 3, CreateAclsResponse)
        assert not any(result.error_code for result in answer.results)
        finding = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
        await admin.ask(finding, 6, FindCoordinatorResponse)
        assert await assigned(alice) == {orders}


async def test_without_an_authorizer_a_pattern_matches_all(tmp_path: Path) -> None:
    options = {name: value for name, value in OPTIONS.items() if name != "authorizer.class.name"}
    async with InProcess(tmp_path, options) as broker:
        topics = {await broker.create_topic("orders"), await broker.create_topic("secret")}
        client = broker.client()
        finding = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
        await client.ask(finding, 6, FindCoordinatorResponse)
        assert topics <= await assigned(client)
