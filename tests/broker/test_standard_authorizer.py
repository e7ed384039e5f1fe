"""Tests a broker's authorizer: entries of CreateAcls are in force at once, and end with their removal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.config import BrokerConfig
from broker.config.authorization import STANDARD_AUTHORIZER
from broker.replica.partition import Partition
from broker.request.context import Principal
from coordinator.replication.isr import NO_BROKER_EPOCH, Follower
from coordinator.replication.roles import Leading
from protocol.acl import Operation, PatternType, Permission, Resource
from protocol.config import ConfigError
from protocol.errors import ErrorCode
from protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.messages.produce import ProduceResponse
from tests.broker.asking import batch, fetch_request, produce_request
from tests.broker.following import FOLLOWER, follow
from tests.broker.inprocess import Client, InProcess
from tests.coordinator.cluster import given

ALICE = Principal("User", "alice")
OPTIONS = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
TOPIC = "orders"


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[InProcess]:
    async with InProcess(tmp_path, OPTIONS) as broker:
        await broker.create_topic(TOPIC)
        await broker.create_topic("secret")
        yield broker


@pytest.fixture
def alice(broker: InProcess) -> Client:
    client = broker.client()
    client.connection.principal = ALICE
    return client


async def allow(broker: InProcess, operation: Operation) -> None:
    creation = AclCreation(
        resource_type=Resource.TOPIC,
        resource_name=TOPIC,
        resource_pattern_type=PatternType.LITERAL,
        principal="User:alice",
        host="*",
        operation=operation,
        permission_type=Permission.ALLOW,
    )
    answer = await broker.client().ask(CreateAclsRequest(creations=[creation]), 3, CreateAclsResponse)
    assert not answer.results[0].error_code


async def allow_nothing(broker: InProcess) -> int:
    """Deletes all entries, and returns their number."""
    answer = await broker.client().ask(DeleteAclsRequest(filters=[given.every_acl()]), 3, DeleteAclsResponse)
    return len(answer.filter_results[0].matching_acls)


async def written(alice: Client, *topics: str) -> list[int]:
    request = produce_request(topics[0], (0, batch(b"a")))
    request.topic_data = [produce_request(topic, (0, batch(b"a"))).topic_data[0] for topic in topics]
    answer = await alice.ask(request, 12, ProduceResponse)
    codes = {topic.name: topic.partition_responses[0].error_code for topic in answer.responses}
    return [codes[topic] for topic in topics]


async def test_an_entry_is_in_force_at_once_and_so_is_its_removal(broker: InProcess, alice: Client) -> None:
    assert await written(alice, TOPIC) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    await allow(broker, Operation.WRITE)
    assert await written(alice, TOPIC) == [ErrorCode.NONE]
    assert await written(alice, TOPIC, "secret") == [ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert await allow_nothing(broker) == 1
    assert await written(alice, TOPIC) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]


async def test_a_fetch_session_ends_to_give_records_when_reading_is_forbidden(broker: InProcess, alice: Client) -> None:
    await broker.client().ask(produce_request(TOPIC, (0, batch(b"a"))), 12, ProduceResponse)
    await allow(broker, Operation.READ)
    opened = await alice.ask(fetch_request(TOPIC, session=(0, 0)), 12, FetchResponse)
    assert opened.responses[0].partitions[0].records
    await allow_nothing(broker)
    again = fetch_request(TOPIC, session=(opened.session_id, 1))
    again.topics = []
    later = await alice.ask(again, 12, FetchResponse)
    assert later.responses[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert not later.responses[0].partitions[0].records


async def test_topics_of_which_one_may_not_know_are_not_listed(broker: InProcess, alice: Client) -> None:
    await allow(broker, Operation.DESCRIBE)
    answer = await alice.ask(MetadataRequest(topics=None), 12, MetadataResponse)
    assert [topic.name for topic in answer.topics] == [TOPIC]
    named = [MetadataRequestTopic(name=name) for name in ("secret", "absent", TOPIC)]
    request = MetadataRequest(topics=named, include_topic_authorized_operations=True)
    answer = await alice.ask(request, 12, MetadataResponse)
    codes = {topic.name: topic.error_code for topic in answer.topics}
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert codes == {"secret": denied, "absent": denied, TOPIC: ErrorCode.NONE}
    operations = {topic.name: topic.topic_authorized_operations for topic in answer.topics}
    assert operations[TOPIC] == 1 << Operation.DESCRIBE
    assert broker.server.broker.image.topic("absent") is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"authorizer.class.name": "com.example.Mine"}, "Java classes are not loaded"),
        ({**OPTIONS, "super.users": "alice"}, "'alice' is not a principal"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BrokerConfig.parse(options)


async def test_a_client_that_may_not_replicate_is_told_nothing_as_a_follower_that_keeps_up(
    broker: InProcess, alice: Client
) -> None:
    partition = broker.server.broker.replicas.partition(TOPIC, 0)
    follow(partition)
    named = FetchPartition(
        partition=0, current_leader_epoch=partition.leader_epoch, fetch_offset=0, partition_max_bytes=1 << 20
    )
    request = FetchRequest(
        replica_state=ReplicaState(replica_id=FOLLOWER, replica_epoch=NO_BROKER_EPOCH),
        topics=[FetchTopic(topic_id=partition.topic_id, partitions=[named])],
        max_wait_ms=0,
        min_bytes=0,
    )
    (answered,) = (await broker.client().ask(request, 17, FetchResponse)).responses[0].partitions
    assert (answered.error_code, answered.high_watermark) == (0, 0)
    before = followers(partition)
    (denied,) = (await alice.ask(request, 17, FetchResponse)).responses[0].partitions
    assert (denied.error_code, denied.high_watermark) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1)
    assert followers(partition) == before


def followers(partition: Partition) -> dict[int, Follower]:
    assert isinstance(partition.role, Leading)
    return dict(partition.role.followers)
