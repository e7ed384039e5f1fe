"""Tests the APIs of streams groups on a whole broker: rights, internal topics, the feature, and descriptions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from broker.handlers import APIS
from broker.handlers.streams_group_heartbeat import LISTED_NAMES
from broker.request.context import Principal
from coordinator.group.streams.requests import MAX_NAMES
from protocol.acl import Operation, PatternType, Permission, Resource
from protocol.errors import ErrorCode
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from protocol.messages.streams_group_heartbeat import (
    KeyValue,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TopicInfo,
    Topology,
)
from protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
    TopologyDescription,
)
from tests.broker.doors import OPTIONS
from tests.broker.inprocess import LONG_S, Client, InProcess

ALICE = Principal("User", "alice")
GROUP = "application"
CHANGELOG = "application-changelog"
OF_ALL = {name: value for name, value in OPTIONS.items() if name != "authorizer.class.name"}

READ = (Resource.GROUP, GROUP, Operation.READ)
DESCRIBE_IN = (Resource.TOPIC, "in", Operation.DESCRIBE)
DESCRIBE_CHANGELOG = (Resource.TOPIC, CHANGELOG, Operation.DESCRIBE)


def topology(source: str = "in", changelog: str = CHANGELOG, **configs: str) -> Topology:
    topic = TopicInfo(
        name=changelog,
        partitions=0,
        replication_factor=0,
        topic_configs=[KeyValue(key=key.replace("_", "."), value=value) for key, value in configs.items()],
    )
    subtopology = Subtopology(
        subtopology_id="0", source_topics=[source], source_topic_regex=[], state_changelog_topics=[topic],
        repartition_sink_topics=[], repartition_source_topics=[], copartition_groups=[],
    )  # fmt: skip
    return Topology(epoch=0, subtopologies=[subtopology])


async def coordinated(broker: InProcess) -> None:
    finding = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
    await broker.client().ask(finding, 6, FindCoordinatorResponse)


async def beat(client: Client, epoch: int = 0, described: Topology | None = None) -> StreamsGroupHeartbeatResponse:
    request = StreamsGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="member",
        member_epoch=epoch,
        endpoint_information_epoch=0,
        rebalance_timeout_ms=10_000,
        topology=described,
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="process",
    )
    async with asyncio.timeout(LONG_S):
        answer = await client.ask(request, 1, StreamsGroupHeartbeatResponse)
        while answer.error_code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR):
            await asyncio.sleep(0)
            answer = await client.ask(request, 1, StreamsGroupHeartbeatResponse)
    return answer


async def describe(client: Client, version: int = 1, *, topology_too: bool = False) -> DescribedGroup:
    request = StreamsGroupDescribeRequest(
        group_ids=[GROUP], include_authorized_operations=False, include_topology_description=topology_too
    )
    (group,) = (await client.ask(request, version, StreamsGroupDescribeResponse)).groups
    return group


def details(answer: StreamsGroupHeartbeatResponse, code: int) -> list[str]:
    """Returns the details of the statuses with this code."""
    return [status.status_detail for status in answer.status or () if status.status_code == code]


async def allow(broker: InProcess, rights: Iterable[tuple[Resource, str, Operation]]) -> Client:
    """Returns a client of Alice, who has these rights."""
    creations = [
        AclCreation(
            resource_type=resource, resource_name=name, resource_pattern_type=PatternType.LITERAL,
            principal=str(ALICE), host="*", operation=operation, permission_type=Permission.ALLOW,
        )
        for resource, name, operation in rights
    ]  # fmt: skip
    answer = await broker.client().ask(CreateAclsRequest(creations=creations), 3, CreateAclsResponse)
    assert not any(result.error_code for result in answer.results)
    alice = broker.client()
    alice.connection.principal = ALICE
    return alice


async def test_the_coordinator_creates_internal_topics_with_their_configs(tmp_path: Path) -> None:
    async with InProcess(tmp_path, OF_ALL) as broker:
        await broker.create_topic("in", 3)
        await coordinated(broker)
        client = broker.client()
        answer = await beat(client, described=topology(cleanup_policy="compact"))
        assert answer.error_code == 0
        assert details(answer, 3) == [f"Internal topics are missing: {CHANGELOG}"]
        async with asyncio.timeout(LONG_S):
            while details(answer, 3):
                await asyncio.sleep(0)
                answer = await beat(client, answer.member_epoch)
        topic = broker.server.broker.image.topic(CHANGELOG)
        assert topic is not None
        assert len(topic.partitions) == 3
        assert broker.server.broker.image.topic_configs(CHANGELOG)["cleanup.policy"] == "compact"


async def test_a_topology_with_too_many_names_is_rejected_before_any_name_is_read(tmp_path: Path) -> None:
    """Even topics that the client may not describe, and names that are not valid."""
    async with InProcess(tmp_path, OPTIONS) as broker:
        alice = await allow(broker, [READ])
        large = topology()
        large.subtopologies[0].repartition_sink_topics = ["\0"] * MAX_NAMES
        answer = await beat(alice, described=large)
        assert answer.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
        assert f"it may have at most {MAX_NAMES:,}" in (answer.error_message or "")


@pytest.mark.parametrize(
    ("source", "changelog", "message"),
    [
        ("in", "new\0", "Topic names new\0 are not valid topic names."),
        ("a b", CHANGELOG, "Topic names a b are not valid topic names."),
        (
            "__consumer_offsets",
            CHANGELOG,
            "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited.",
        ),
    ],
)
async def test_without_an_authorizer_the_names_of_topics_are_validated(
    tmp_path: Path, source: str, changelog: str, message: str
) -> None:
    async with InProcess(tmp_path, OF_ALL) as broker:
        await coordinated(broker)
        answer = await beat(broker.client(), described=topology(source, changelog))
        assert (answer.error_code, answer.error_message) == (ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
        assert (answer.active_tasks, answer.standby_tasks, answer.warmup_tasks) == (None, None, None)
        assert answer.partitions_by_user_endpoint is None


async def test_the_error_of_an_internal_topic_is_in_the_status(tmp_path: Path) -> None:
    async with InProcess(tmp_path, OF_ALL) as broker:
        await broker.create_topic("in", 1)
        await coordinated(broker)
        client = broker.client()
        answer = await beat(client, described=topology(no_such_config="1"))
        async with asyncio.timeout(LONG_S):
            while "Creation failed" not in details(answer, 3)[0]:
                await asyncio.sleep(0)
                answer = await beat(client, answer.member_epoch)
        (detail,) = details(answer, 3)
        assert detail.startswith(f"Internal topics are missing: {CHANGELOG}; Creation failed: {CHANGELOG} (")


@pytest.mark.parametrize(
    ("rights", "error"),
    [
        ((), ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ((READ, DESCRIBE_IN), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ((READ, DESCRIBE_CHANGELOG), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
async def test_a_member_needs_rights_on_the_group_and_all_topics(
    rights: tuple[tuple[Resource, str, Operation], ...], error: ErrorCode, tmp_path: Path
) -> None:
    async with InProcess(tmp_path, OPTIONS) as broker:
        await broker.create_topic("in", 1)
        await coordinated(broker)
        answer = await beat(await allow(broker, rights), described=topology())
        assert answer.error_code == error
        assert broker.server.broker.image.topic(CHANGELOG) is None


@pytest.mark.parametrize(
    ("right", "is_created"),
    [
        (None, False),
        ((Resource.TOPIC, CHANGELOG, Operation.CREATE), True),
        ((Resource.CLUSTER, "kafka-cluster", Operation.CREATE), True),
    ],
)
async def test_internal_topics_are_created_with_the_rights_of_the_member(
    right: tuple[Resource, str, Operation] | None, is_created: bool, tmp_path: Path
) -> None:
    async with InProcess(tmp_path, OPTIONS) as broker:
        await broker.create_topic("in", 1)
        await coordinated(broker)
        rights = [READ, DESCRIBE_IN, DESCRIBE_CHANGELOG]
        alice = await allow(broker, [*rights, right] if right is not None else rights)
        answer = await beat(alice, described=topology())
        assert answer.error_code == 0
        denial = f"Internal topics are missing: {CHANGELOG}; Unauthorized to CREATE on topics {CHANGELOG}."
        assert (details(answer, 3) == [denial]) is not is_created
        if is_created:
            async with asyncio.timeout(LONG_S):
                while broker.server.broker.image.topic(CHANGELOG) is None:  # noqa: ASYNC110 (it is created meanwhile)
                    await asyncio.sleep(0)


async def test_a_status_names_only_some_of_many_unauthorized_topics(tmp_path: Path) -> None:
    async with InProcess(tmp_path, OPTIONS) as broker:
        await broker.create_topic("in", 1)
        await coordinated(broker)
        described = topology()
        described.subtopologies[0].state_changelog_topics = [
            TopicInfo(name=f"{number:0249}", partitions=0, replication_factor=0, topic_configs=[])
            for number in range(LISTED_NAMES + 7)
        ]
        alice = await allow(broker, [READ, (Resource.TOPIC, "*", Operation.DESCRIBE)])
        (detail,) = details(await beat(alice, described=described), 3)
        assert detail.endswith(" and 7 more.")
        assert len(detail) < 2**15


@pytest.mark.parametrize("described", [topology("__consumer_offsets"), topology(changelog="a/b")])
async def test_topics_that_no_topology_may_have_are_rejected(described: Topology, tmp_path: Path) -> None:
    async with InProcess(tmp_path, OPTIONS) as broker:
        await coordinated(broker)
        answer = await beat(await allow(broker, [READ]), described=described)
        assert answer.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
        assert answer.error_message


async def test_a_group_is_described_to_clients_that_may_describe_its_topics(tmp_path: Path) -> None:
    async with InProcess(tmp_path, OPTIONS) as broker:
        await broker.create_topic("in", 1)
        await coordinated(broker)
        admin = broker.client()
        await beat(admin, described=topology())
        group = await describe(admin, topology_too=True)
        assert (group.error_code, group.group_state, group.assignor_name) == (0, "NotReady", "sticky")
        assert (group.topology_description_status, group.topology_description) == (1, None)
        assert [member.member_id for member in group.members] == ["member"]
        alice = await allow(broker, [(Resource.GROUP, GROUP, Operation.DESCRIBE), DESCRIBE_IN])
        hidden = await describe(alice)
        assert (hidden.error_code, hidden.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])
        await allow(broker, [DESCRIBE_CHANGELOG])
        assert (await describe(alice, version=0)).error_code == 0


async def test_other_groups_are_not_described(tmp_path: Path) -> None:
    async with InProcess(tmp_path, OF_ALL) as broker:
        await coordinated(broker)
        group = await describe(broker.client())
        assert (group.error_code, group.error_message, group.topology, group.assignor_name) == (
            ErrorCode.GROUP_ID_NOT_FOUND, f"Group {GROUP} not found.", None, None,
        )  # fmt: skip


async def test_a_description_of_the_topology_is_refused(tmp_path: Path) -> None:
    async with InProcess(tmp_path, OF_ALL) as broker:
        await coordinated(broker)
        request = StreamsGroupTopologyDescriptionUpdateRequest(
            group_id=GROUP,
            member_id="member",
            topology_epoch=0,
            topology_description=TopologyDescription(subtopologies=[], global_stores=[]),
        )
        answer = await broker.client().ask(request, 0, StreamsGroupTopologyDescriptionUpdateResponse)
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert answer.error_message == "The broker has no streams group topology description plugin configured."


async def test_a_broker_without_the_protocol_serves_no_streams_groups(tmp_path: Path) -> None:
    options = {**OF_ALL, "group.coordinator.rebalance.protocols": "classic,consumer"}
    async with InProcess(tmp_path, options) as broker:
        await coordinated(broker)
        client = broker.client()
        assert (await beat(client, described=topology())).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert (await describe(client)).error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_a_protocol_that_is_not_enabled_is_refused_before_the_client_is_authorized(tmp_path: Path) -> None:
    options = {**OPTIONS, "group.coordinator.rebalance.protocols": "classic"}
    async with InProcess(tmp_path, options) as broker:
        client = broker.client()
        client.connection.principal = ALICE
        assert (await beat(client, described=topology())).error_code == ErrorCode.UNSUPPORTED_VERSION
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id="m", member_epoch=0)
        response = await client.ask(request, 1, ConsumerGroupHeartbeatResponse)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_every_api_of_a_group_protocol_names_it() -> None:
    named = {api.key.name: api.protocol.feature for api in APIS if api.protocol is not None}
    assert named == {
        "CONSUMER_GROUP_DESCRIBE": "group.version",
        "CONSUMER_GROUP_HEARTBEAT": "group.version",
        "ALTER_SHARE_GROUP_OFFSETS": "share.version",
        "DELETE_SHARE_GROUP_OFFSETS": "share.version",
        "DESCRIBE_SHARE_GROUP_OFFSETS": "share.version",
        "DESCRIBE_SHARE_GROUP_RECORDS": "share.version",
        "SHARE_ACKNOWLEDGE": "share.version",
        "SHARE_FETCH": "share.version",
        "SHARE_GROUP_DESCRIBE": "share.version",
        "SHARE_GROUP_HEARTBEAT": "share.version",
        "STREAMS_GROUP_DESCRIBE": "streams.version",
        "STREAMS_GROUP_HEARTBEAT": "streams.version",
        "STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE": "streams.version",
    }
