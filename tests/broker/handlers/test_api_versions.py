"""Tests ApiVersions: the served APIs, and the client's software and expectations."""

from __future__ import annotations

import struct

import pytest

from broker.dispatch.api import Apis
from broker.dispatch.host import TELEMETRY
from broker.handlers import APIS
from broker.handlers.controller import CONTROLLER_APIS
from protocol.codec import decode
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.broker.inprocess import Client, InProcess, request_frame


def request(
    name: str = "test", version: str = "1", cluster_id: str | None = None, node_id: int = -1
) -> ApiVersionsRequest:
    return ApiVersionsRequest(
        client_software_name=name, client_software_version=version, cluster_id=cluster_id, node_id=node_id
    )


@pytest.mark.parametrize("version", range(6))
async def test_every_api_of_the_table_is_told(version: int, client: Client) -> None:
    answer = await client.ask(request(), version, ApiVersionsResponse)
    assert {served.api_key for served in answer.api_keys} == {api.key for api in APIS} - TELEMETRY
    assert next(served.min_version for served in answer.api_keys if served.api_key == 0) == 0


@pytest.mark.parametrize("apis", [APIS, CONTROLLER_APIS], ids=["broker", "controller"])
def test_the_versions_of_messages_are_those_of_the_rows(apis: Apis) -> None:
    assert [*apis.ranges()] == [(row.key, row.versions) for row in apis]


async def test_an_unknown_version_is_answered_in_version_0_with_the_own_range(client: Client) -> None:
    frame = request_frame(request(), 3)
    client.send(frame[:6] + struct.pack(">h", 99) + frame[8:])
    (answered,) = await client.frames(1)
    answer = decode(ApiVersionsResponse, 0, answered, 4)[0]
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(served.api_key, served.max_version) for served in answer.api_keys] == [(18, 5)]


@pytest.mark.parametrize("name", ["", "-a", "a.", "a b", "ü"])
async def test_the_client_s_name_is_checked(name: str, client: Client) -> None:
    for hello in (request(name=name), request(version=name)):
        answer = await client.ask(hello, 3, ApiVersionsResponse)
        assert (answer.error_code, answer.api_keys) == (ErrorCode.INVALID_REQUEST, [])


async def test_the_client_s_name_is_remembered(client: Client) -> None:
    await client.ask(request("librdkafka", "2.3.0"), 3, ApiVersionsResponse)
    assert client.connection.client_software == ("librdkafka", "2.3.0")


async def test_whom_a_client_takes_this_broker_for(broker: InProcess, client: Client) -> None:
    cluster_id, node_id = broker.server.broker.image.cluster_id, 1
    for hello, code in (
        (request(cluster_id=cluster_id, node_id=node_id), ErrorCode.NONE),
        (request(cluster_id=cluster_id, node_id=2), ErrorCode.REBOOTSTRAP_REQUIRED),
        (request(cluster_id="another", node_id=node_id), ErrorCode.REBOOTSTRAP_REQUIRED),
        (request(cluster_id=cluster_id), ErrorCode.INVALID_REQUEST),
        (request(node_id=node_id), ErrorCode.INVALID_REQUEST),
    ):
        assert (await client.ask(hello, 5, ApiVersionsResponse)).error_code == code


async def test_the_version_of_the_quorum_is_told_as_one_of_the_features(broker: InProcess, client: Client) -> None:
    for level, kraft in ((0, []), (1, [("kraft.version", 1)])):
        broker.server.broker.image.kraft_version = level
        broker.server.broker.api_versions.clear()
        answer = await client.ask(request(), 4, ApiVersionsResponse)
        features = [(feature.name, feature.max_version_level) for feature in answer.finalized_features]
        assert [feature for feature in features if feature[0] == "kraft.version"] == kraft


async def test_features_are_told_since_version_3(client: Client) -> None:
    old, new = [await client.ask(request(), version, ApiVersionsResponse) for version in (3, 4)]
    assert "transaction.version" not in {feature.name for feature in old.supported_features}
    assert {"metadata.version", "transaction.version"} <= {feature.name for feature in new.supported_features}
    assert {feature.name: feature.max_version_level for feature in new.finalized_features}["group.version"] == 1
