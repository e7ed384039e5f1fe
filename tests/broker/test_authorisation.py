"""Tests the permissions that each API requires, and where they are checked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from broker.dispatch.api import CONTROLLER, Api
from broker.dispatch.route import Route
from broker.handlers import APIS, heartbeat
from broker.handlers.controller import CONTROLLER_APIS
from broker.request.authorisation import CLUSTER_NAME, PUBLIC, Operation, Resource
from broker.request.context import Context
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from protocol.messages.produce import ProduceResponse
from tests.broker.asking import batch, produce_request
from tests.broker.inprocess import InProcess
from tests.coordinator.cluster.given import creatable

OPEN_TO_ALL = {
    ApiKey.API_VERSIONS,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
}
"""ApiVersions comes before authentication. DescribeCluster answers everybody, with the authorized operations. A token
may be renewed and expired by its owner and its renewers."""


class Denies:
    """An authorizer that denies some operations to everybody, and records the checks."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.questions: list[tuple[str, Operation, Resource, str]] = []

    def allows(
        self, context: Context, operation: Operation, resource: Resource, name: str, *, quiet: bool = False
    ) -> bool:
        self.questions.append((str(context.principal), operation, resource, name))
        return name not in self.names

    def allows_some(self, context: Context, operation: Operation, resource: Resource) -> bool:
        return not self.names


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[InProcess]:
    async with InProcess(tmp_path) as broker:
        yield broker


@pytest.mark.parametrize("api", [*APIS], ids=lambda api: api.key.name)
def test_an_api_requires_something_unless_it_is_open_to_all(api: Api) -> None:
    assert (not api.authorize.requirements) is (api.key in OPEN_TO_ALL)


def test_a_requirement_reads_as_the_documentation_has_it() -> None:
    rows = {api.key: str(api.authorize) for api in APIS}
    assert rows[ApiKey.API_VERSIONS] == "nothing"
    assert rows[ApiKey.CREATE_ACLS] == "ALTER on CLUSTER"
    assert rows[ApiKey.OFFSET_COMMIT] == "READ on GROUP, READ on TOPIC"
    assert str(PUBLIC) == "nothing"


def test_a_row_without_a_rule_cant_be_made() -> None:
    with pytest.raises(TypeError, match="authorize"):
        Api(HeartbeatRequest, HeartbeatResponse, heartbeat.heartbeat)  # type: ignore[call-arg]


@pytest.mark.parametrize("api", [*CONTROLLER_APIS], ids=lambda api: api.key.name)
def test_an_api_of_the_controllers_requires_something_unless_it_is_open_to_all(api: Api) -> None:
    assert (not api.authorize.requirements) is (api.key in OPEN_TO_ALL - {ApiKey.DESCRIBE_CLUSTER})


def test_a_controller_has_every_api_that_brokers_forward() -> None:
    forwarded = [row for row in APIS if row.answered_by is CONTROLLER]
    assert len(forwarded) == 21
    assert [row.key for row in forwarded if CONTROLLER_APIS.find(row.key) is not row] == []


@pytest.mark.parametrize("row", [*APIS, *CONTROLLER_APIS], ids=lambda api: api.key.name)
def test_an_api_without_a_handler_is_the_controllers(row: Api) -> None:
    assert row.handle is not None or row.answered_by is CONTROLLER
    assert row.here is None or row.answered_by is CONTROLLER


@pytest.mark.parametrize("authorizes", [False, True])
async def test_a_request_meets_a_rule_only_if_there_is_an_authorizer(broker: InProcess, authorizes: bool) -> None:
    host = broker.server.broker
    host.authorizer = Denies() if authorizes else None
    assert (Route(heartbeat.API, host).handle is not heartbeat.heartbeat) is authorizes


async def test_what_requires_the_cluster_is_refused_before_its_handler(broker: InProcess) -> None:
    authorizer: Any = Denies(CLUSTER_NAME)
    broker.server.broker.authorizer = authorizer
    request = ListPartitionReassignmentsRequest(timeout_ms=1000, topics=None)
    answer = await broker.client().ask(request, 0, ListPartitionReassignmentsResponse)
    assert (answer.error_code, answer.topics) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
    assert authorizer.questions == [("User:ANONYMOUS", Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME)]


class Fails(Denies):
    """An authorizer that raises an unexpected error."""

    def allows(
        self, context: Context, operation: Operation, resource: Resource, name: str, *, quiet: bool = False
    ) -> bool:
        raise RuntimeError("a bug")


async def test_an_authorizer_that_fails_permits_nothing(broker: InProcess) -> None:
    await broker.create_topic("t")
    broker.server.broker.authorizer = Fails()
    client = broker.client()
    created = await client.ask(
        CreateTopicsRequest(topics=[creatable("u", 1, 1)], timeout_ms=1000), 7, CreateTopicsResponse
    )
    produced = await client.ask(produce_request("t", (0, batch(b"x"))), 12, ProduceResponse)
    assert [topic.error_code for topic in created.topics] == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert produced.responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert broker.server.broker.image.topic("u") is None
    assert broker.server.broker.replicas.partition("t", 0).log_end_offset == 0


async def test_everybody_may_do_everything_where_there_is_no_authorizer(broker: InProcess) -> None:
    request = ListPartitionReassignmentsRequest(timeout_ms=1000, topics=None)
    assert not (await broker.client().ask(request, 0, ListPartitionReassignmentsResponse)).error_code
