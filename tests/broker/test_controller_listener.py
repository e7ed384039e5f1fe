"""Tests a controller's listener with frames instead of a socket; everything else is as in production."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from broker.handlers.controller import CONTROLLER_APIS
from broker.metadata.elected_controller import ElectedController
from broker.metadata.forwarding import envelope
from broker.request.context import ClientConnection
from broker.request.pending import Answer
from coordinator.cluster.brokers.features import SUPPORTED
from coordinator.cluster.quorum import TOPIC_ID
from coordinator.cluster.record import decode_batches
from coordinator.cluster.requester import Requester
from programs.run.controller_server import ControllerServer
from protocol.api_key import ApiKey
from protocol.codec import decode, encode
from protocol.errors import ErrorCode, ProtocolError
from protocol.messages import fetch
from protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse, PartitionData, TopicData
from protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.header import RequestHeader
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.messages.metadata import MetadataRequest
from protocol.messages.update_features import UpdateFeaturesRequest
from protocol.messages.vote import VoteRequest, VoteResponse
from protocol.metadata_records.log import NoOpRecord
from protocol.schema import identity
from protocol.types import NO_UUID
from tests.broker.controllers import NODE, serving_controller

R = TypeVar("R")
CORRELATION_ID = 7
OBSERVER_DIRECTORY = b"observer's files"
CLIENT = Requester("User", "alice", "a-client", "10.1.2.3")
LONG_S = 30


class Controller:
    """A controller in this process."""

    def __init__(self, server: ControllerServer) -> None:
        self.server = server
        self.connection = ClientConnection("CONTROLLER", lambda _, answer: answer)

    async def answered(self, answer: Answer) -> bytes:
        if not isinstance(answer, list):
            assert answer is not None
            future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            answer.begin(future.set_result)
            answer = await asyncio.wait_for(future, LONG_S)
            assert isinstance(answer, list), answer
        return b"".join(answer)

    async def ask(self, request: object, response: type[R], version: int | None = None) -> R:
        api = identity(type(request))
        version = api.versions.last if version is None else version
        is_flexible = version >= api.flexible.first
        header = RequestHeader(
            request_api_key=api.key, request_api_version=version, correlation_id=CORRELATION_ID, client_id="test"
        )
        frame = encode(header, 2 if is_flexible else 1) + encode(request, version)
        (listener,) = self.server.listeners
        data = await self.answered(listener.answer(self.connection, memoryview(frame)))
        has_tags = is_flexible and api.key != ApiKey.API_VERSIONS
        return decode(response, version, data[9 if has_tags else 8 :])[0]

    @property
    def epoch(self) -> int:
        return self.server.part.log.epoch

    def fetch(self, offset: int, epoch: int, **fields: Any) -> FetchRequest:
        partition = fetch.FetchPartition(
            partition=0, current_leader_epoch=self.epoch, fetch_offset=offset, last_fetched_epoch=epoch,
            partition_max_bytes=0, replica_directory_id=OBSERVER_DIRECTORY,
        )  # fmt: skip
        return FetchRequest(
            replica_state=fetch.ReplicaState(replica_id=1),
            min_bytes=0,
            topics=[fetch.FetchTopic(topic_id=TOPIC_ID, partitions=[partition])],
            **{"max_wait_ms": 0, **fields},
        )


@pytest.fixture
async def controller(tmp_path: Path) -> AsyncIterator[Controller]:
    async with serving_controller(tmp_path) as server:
        yield Controller(server)


def topics(*names: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
            for name in names
        ]
    )


async def test_api_versions_has_the_table_of_a_controller(controller: Controller) -> None:
    response = await controller.ask(
        ApiVersionsRequest(client_software_name="test", client_software_version="1"), ApiVersionsResponse
    )
    served = {one.api_key: (one.min_version, one.max_version) for one in response.api_keys}
    assert set(served) == {api.key for api in CONTROLLER_APIS}
    assert served[ApiKey.FETCH] == (0, 18)
    assert {ApiKey.PRODUCE, ApiKey.METADATA, ApiKey.FIND_COORDINATOR}.isdisjoint(served)
    assert {one.name for one in response.supported_features} == set(SUPPORTED)
    finalized = {one.name: one.max_version_level for one in response.finalized_features}
    assert finalized["metadata.version"] == 33


async def test_what_only_brokers_serve_closes_the_connection(controller: Controller) -> None:
    with pytest.raises(ProtocolError, match="METADATA v12 is not served"):
        await controller.ask(MetadataRequest(topics=None), object, 12)


async def test_an_observer_reads_the_log_and_waits_for_more(controller: Controller) -> None:
    first = await controller.ask(controller.fetch(0, 0), FetchResponse)
    (partition,) = first.responses[0].partitions
    assert partition.high_watermark == controller.server.part.log.high_watermark
    assert partition.records
    endpoint = first.node_endpoints[0]
    assert (endpoint.node_id, endpoint.port) == (NODE, controller.server.advertised[0].port)
    waiting = asyncio.create_task(
        controller.ask(controller.fetch(partition.high_watermark, controller.epoch, max_wait_ms=60_000), FetchResponse)
    )
    await asyncio.sleep(0)
    assert not waiting.done()
    elected = controller.server.part.cluster.controller
    assert isinstance(elected, ElectedController)
    assert elected.active is not None
    await elected.active.write([NoOpRecord()])
    (partition,) = (await waiting).responses[0].partitions
    (batch,) = decode_batches(partition.records or b"")
    assert batch.records == [NoOpRecord()]
    assert partition.high_watermark in (batch.base_offset, batch.next_offset), "they may come before they are committed"


async def test_an_observer_that_waits_in_vain_is_answered_in_time(controller: Controller) -> None:
    end = controller.server.part.log.high_watermark
    response = await controller.ask(controller.fetch(end, controller.epoch, max_wait_ms=20), FetchResponse)
    (partition,) = response.responses[0].partitions
    assert (partition.error_code, partition.high_watermark, partition.records) == (0, end, b"")


async def test_describe_quorum_has_the_voter_and_its_observers(controller: Controller) -> None:
    end = controller.server.part.log.high_watermark
    await controller.ask(controller.fetch(end, controller.epoch), FetchResponse)
    request = DescribeQuorumRequest(
        topics=[TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])]
    )
    response = await controller.ask(request, DescribeQuorumResponse)
    ((partition,),) = (topic.partitions for topic in response.topics)
    (voter,), (observer,) = partition.current_voters, partition.observers
    assert (voter.replica_id, voter.replica_directory_id) == (NODE, NO_UUID), "a voter of the configuration has none"
    assert (observer.replica_id, observer.replica_directory_id) == (1, OBSERVER_DIRECTORY)
    assert (observer.log_end_offset, partition.high_watermark) == (end, end)
    assert observer.last_caught_up_timestamp == observer.last_fetch_timestamp > 0
    (node,) = response.nodes
    assert node.listeners[0].port == controller.server.advertised[0].port


async def test_an_option_of_all_nodes_is_the_controller_s_too(controller: Controller) -> None:
    config = AlterableConfig(name="max.connections.per.ip", config_operation=0, value="7")
    resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    response = await controller.ask(request, IncrementalAlterConfigsResponse)
    assert [one.error_code for one in response.responses] == [0]
    described = await controller.ask(
        DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=4, resource_name=str(NODE), configuration_keys=[])]
        ),
        DescribeConfigsResponse,
    )
    (result,) = described.results
    assert {one.name: one.value for one in result.configs}["max.connections.per.ip"] == "7"


async def test_describe_cluster_has_controllers_and_no_brokers(controller: Controller) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=2)
    response = await controller.ask(request, DescribeClusterResponse)
    assert (response.error_code, response.controller_id, response.endpoint_type) == (0, NODE, 2)
    (own,) = response.brokers
    assert (own.broker_id, own.port) == (NODE, controller.server.advertised[0].port)
    request.endpoint_type = 1
    response = await controller.ask(request, DescribeClusterResponse)
    assert response.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    request.endpoint_type = 9
    response = await controller.ask(request, DescribeClusterResponse)
    assert response.error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


async def test_a_vote_moves_no_epoch(controller: Controller) -> None:
    before = controller.epoch
    response = await controller.ask(VoteRequest(cluster_id="another", topics=[]), VoteResponse)
    assert response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert controller.epoch == before


async def test_a_forwarded_request_is_answered_as_if_its_client_were_here(controller: Controller) -> None:
    wrapped = envelope(topics("t"), 7, CLIENT)
    response = await controller.ask(wrapped, EnvelopeResponse)
    assert response.error_code == ErrorCode.NONE
    assert response.response_data is not None
    body, _ = decode(CreateTopicsResponse, 7, response.response_data[5:])
    (topic,) = body.topics
    assert topic.error_code == ErrorCode.INVALID_REPLICATION_FACTOR, "there is no broker yet"


async def test_a_broker_of_apache_kafka_may_forward_what_would_change_the_voters(controller: Controller) -> None:
    request = AddRaftVoterRequest(
        cluster_id="the-cluster",
        timeout_ms=1000,
        voter_id=101,
        voter_directory_id=OBSERVER_DIRECTORY,
        listeners=[Listener(name="CONTROLLER", host="127.0.0.1", port=9093)],
    )
    response = await controller.ask(envelope(request, 0, CLIENT), EnvelopeResponse)
    assert response.error_code == ErrorCode.NONE
    assert response.response_data is not None
    body, _ = decode(AddRaftVoterResponse, 0, response.response_data[5:])
    assert body.error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("version", [2, 7])
async def test_a_controller_that_has_renounced_says_so_outside_of_what_it_was_asked(
    controller: Controller, version: int
) -> None:
    """If the error were in the inner answer, the broker wouldn't notice it, and would pass it on to its client."""
    elected = controller.server.part.cluster.controller
    assert isinstance(elected, ElectedController)
    await elected.stop()
    update = UpdateFeaturesRequest(timeout_ms=1000, feature_updates=[])
    for request, its_version in ((topics("t"), version), (update, 1)):
        response = await controller.ask(envelope(request, its_version, CLIENT), EnvelopeResponse)
        assert (response.error_code, response.response_data) == (ErrorCode.NOT_CONTROLLER, None)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"request_principal": None}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": b"\x00\x09"}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": b"\x00\x00\xff\xff\xff\xff\x0f"}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"client_host_address": b"123"}, ErrorCode.INVALID_REQUEST),
        ({"client_host_address": b""}, ErrorCode.INVALID_REQUEST),
        ({"request_data": b""}, ErrorCode.UNSUPPORTED_VERSION),
        ({"request_data": b"\x00"}, ErrorCode.UNSUPPORTED_VERSION),
        ({"request_data": b"\x7f\xff\x00\x00"}, ErrorCode.UNSUPPORTED_VERSION),
        ({"request_data": b"\x00\x13\x00\x07"}, ErrorCode.UNSUPPORTED_VERSION),
        ({"request_data": b"\x00\x13\x7f\xff\x00\x00\x00\x00\xff\xff"}, ErrorCode.UNSUPPORTED_VERSION),
        ({"request_data": b"\x00\x3a\x00\x00\x00\x00\x00\x00\xff\xff"}, ErrorCode.INVALID_REQUEST),
        ({"request_data": b"\x00\x01\x00\x12\x00\x00\x00\x00\xff\xff"}, ErrorCode.INVALID_REQUEST),
        ({"request_data": b"\x00\x3f\x00\x00\x00\x00\x00\x00\xff\xff"}, ErrorCode.INVALID_REQUEST),  # BrokerHeartbeat
    ],
)
async def test_an_odd_envelope_has_its_error_and_closes_nothing(
    controller: Controller, change: dict[str, Any], code: ErrorCode
) -> None:
    wrapped = envelope(topics("t"), 7, CLIENT)
    for name, value in change.items():
        setattr(wrapped, name, value)
    assert isinstance(wrapped, EnvelopeRequest)
    response = await controller.ask(wrapped, EnvelopeResponse)
    assert (response.error_code, response.response_data) == (code, None)


async def test_a_forwarded_request_that_is_cut_short_has_an_error_too(controller: Controller) -> None:
    wrapped = envelope(topics("t"), 7, CLIENT)
    for size in range(len(wrapped.request_data)):
        cut = EnvelopeRequest(
            request_data=wrapped.request_data[:size],
            request_principal=wrapped.request_principal,
            client_host_address=wrapped.client_host_address,
        )
        assert (await controller.ask(cut, EnvelopeResponse)).error_code == ErrorCode.UNSUPPORTED_VERSION
