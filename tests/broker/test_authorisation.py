"""The permissions that each API requires, and where they are checked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.exchange.authorisation import CLUSTER_NAME, NOTHING, Operation, Requires, Resource
from broker.exchange.context import Context
from broker.handlers import APIS
from broker.requests.api import Api
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from tests.broker.inprocess import InProcess

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
"""ApiVersions comes before authentication; DescribeCluster says what is authorised, and is told to everybody; a token
is its owner's and renewers' to renew and to end."""


class Denies:
    """An authorizer that lets nobody do some things, and remembers what it was asked."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.questions: list[tuple[str, Operation, Resource, str]] = []

    def allows(self, context: Context, operation: Operation, resource: Resource, name: str) -> bool:
        self.questions.append((str(context.principal), operation, resource, name))
        return name not in self.names


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[InProcess]:
    async with InProcess(tmp_path) as broker:
        yield broker


@pytest.mark.parametrize("api", [*APIS], ids=lambda api: api.key.name)
def test_an_api_requires_something_unless_it_is_open_to_all(api: Api) -> None:
    assert (api.requires == NOTHING) is (api.key in OPEN_TO_ALL)


def test_a_requirement_reads_as_the_documentation_has_it() -> None:
    rows = {api.key: str(api.requires) for api in APIS}
    assert rows[ApiKey.API_VERSIONS] == "nothing"
    assert rows[ApiKey.CREATE_ACLS] == "ALTER on CLUSTER"
    assert rows[ApiKey.OFFSET_COMMIT] == "READ on GROUP, READ on TOPIC"
    assert str(Requires()) == "nothing"


async def test_what_requires_the_cluster_is_refused_before_its_handler(broker: InProcess) -> None:
    authorizer = broker.server.broker.authorizer = Denies(CLUSTER_NAME)
    request = ListPartitionReassignmentsRequest(timeout_ms=1000, topics=None)
    answer = await broker.client().ask(request, 0, ListPartitionReassignmentsResponse)
    assert (answer.error_code, answer.topics) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
    assert authorizer.questions == [("User:ANONYMOUS", Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME)]


async def test_everybody_may_do_everything_where_there_is_no_authorizer(broker: InProcess) -> None:
    request = ListPartitionReassignmentsRequest(timeout_ms=1000, topics=None)
    assert not (await broker.client().ask(request, 0, ListPartitionReassignmentsResponse)).error_code
