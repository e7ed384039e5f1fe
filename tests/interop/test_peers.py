"""Tests the client of brokers and commands with Odradek and Apache Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from broker.clock import SystemClock
from client.address import Address
from client.aio import connect
from client.errors import PeerError, PeerUnavailable, RequestTimedOut
from client.pending import InFlightLimits
from client.pool import Peer, Peers
from client.settings import Settings
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.messages.offset_fetch import OffsetFetchResponse
from protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from protocol.records.building import build
from protocol.records.record import Record
from tests.group_requests import offset_fetch
from tests.interop.brokers import Broker
from tests.interop.conftest import make_broker

TIMEOUT_MS = 30_000
BY_NAME = 12
"""The versions of Produce and Fetch that name topics; since 13 they have ids."""


@pytest.fixture(scope="module", params=["odradek", "apache"])
def either(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Yields a broker of either kind for all tests; the last test kills and restarts it."""
    broker = make_broker(request.param, tmp_path_factory.mktemp("peers") / "data")
    broker.start()
    yield broker
    broker.stop()
    broker.forget()


@asynccontextmanager
async def peer_of(broker: Broker, settings: Settings = Settings()) -> AsyncIterator[Peer]:  # noqa: B008  # a tuple
    peer = Peer(Address.parse(broker.bootstrap), settings, SystemClock(), lambda: 0.5)
    yield peer
    await peer.close()


async def create(peer: Peer, name: str) -> None:
    """Creates a topic with one partition, whose leader is ready."""
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
    request = CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
    created = await peer.send(request, CreateTopicsResponse, timeout_ms=TIMEOUT_MS)
    assert created.topics[0].error_code == ErrorCode.NONE
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    listing = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=[partition])])
    async with asyncio.timeout(TIMEOUT_MS / 1000):
        while True:  # Apache Kafka answers before its broker half has heard of the topic
            listed = await peer.send(listing, ListOffsetsResponse, timeout_ms=TIMEOUT_MS)
            if not listed.topics[0].partitions[0].error_code:
                return
            await asyncio.sleep(0.01)


def produce(topic: str, value: bytes, acks: int = -1) -> ProduceRequest:
    batch = bytes(build([Record(0, 0, None, value, [])]))
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
    return ProduceRequest(acks=acks, timeout_ms=TIMEOUT_MS, topic_data=[data])


def fetch(topic: str, offset: int, max_wait_ms: int = 10_000) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic=topic, partitions=[partition])]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1 << 22, topics=topics)


async def test_each_api_of_a_client_s_life_is_answered(either: Broker) -> None:
    async with peer_of(either) as peer:
        versions = await peer.send(ApiVersionsRequest(), ApiVersionsResponse, timeout_ms=TIMEOUT_MS, max_version=2)
        assert ApiKey.METADATA in [api.api_key for api in versions.api_keys]
        await create(peer, "t")
        names = [MetadataRequestTopic(name="t")]
        metadata = await peer.send(MetadataRequest(topics=names), MetadataResponse, timeout_ms=TIMEOUT_MS)
        assert len(metadata.topics[0].partitions) == 1
        produced = await peer.send(
            produce("t", b"v" * 100_000), ProduceResponse, timeout_ms=TIMEOUT_MS, max_version=BY_NAME
        )
        assert produced.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        await peer.tell(produce("t", b"w", acks=0), timeout_ms=TIMEOUT_MS, max_version=BY_NAME)
        records = b""
        for offset in (0, 1):
            answer = await peer.send(fetch("t", offset), FetchResponse, timeout_ms=TIMEOUT_MS, max_version=BY_NAME)
            partition = answer.responses[0].partitions[0]
            assert partition.error_code == ErrorCode.NONE
            records += bytes(partition.records or b"")
        assert b"v" * 100_000 in records
        finding = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        async with asyncio.timeout(TIMEOUT_MS / 1000):
            while True:  # the first to ask has the topic of offsets made
                coordinators = await peer.send(finding, FindCoordinatorResponse, timeout_ms=TIMEOUT_MS)
                if not coordinators.coordinators[0].error_code:
                    break
                await asyncio.sleep(0.01)
        assert coordinators.coordinators[0].key == "g"
        offsets = await peer.send(
            offset_fetch("g"),
            OffsetFetchResponse,
            timeout_ms=TIMEOUT_MS,
        )
        assert offsets.groups[0].group_id == "g"


async def test_a_thousand_requests_at_once_are_answered(either: Broker) -> None:
    settings = Settings(limits=InFlightLimits(max_in_flight=1000))
    async with peer_of(either, settings) as peer:
        sends = [peer.send(MetadataRequest(topics=[]), MetadataResponse, timeout_ms=TIMEOUT_MS) for _ in range(1000)]
        answers = await asyncio.gather(*sends)
        assert len({answer.cluster_id for answer in answers}) == 1


async def test_every_version_of_an_api_is_spoken(either: Broker) -> None:
    connection = await connect(Address.parse(either.bootstrap), Settings(), SystemClock())
    spoken = connection.versions.ranges[ApiKey.METADATA]
    for version in range(spoken.first, connection.versions.pick("", MetadataRequest) + 1):
        request = MetadataRequest(topics=[])
        answer = await connection.send(request, MetadataResponse, timeout_ms=TIMEOUT_MS, max_version=version)
        assert answer.brokers
    await connection.close()


async def test_a_request_behind_a_long_poll_times_out_alone(either: Broker) -> None:
    async with peer_of(either) as peer:
        await create(peer, "quiet")
        poll = fetch("quiet", 0, max_wait_ms=3000)
        polling = asyncio.create_task(peer.send(poll, FetchResponse, timeout_ms=TIMEOUT_MS, max_version=BY_NAME))
        await asyncio.sleep(0)  # it is sent first
        with pytest.raises(RequestTimedOut):
            await peer.send(MetadataRequest(topics=[]), MetadataResponse, timeout_ms=1000)
        assert (await polling).responses is not None
        cluster = await peer.send(
            DescribeClusterRequest(include_cluster_authorized_operations=False),
            DescribeClusterResponse,
            timeout_ms=TIMEOUT_MS,
        )
        assert len(cluster.brokers) == 1


async def test_bootstrap_finds_the_broker_and_its_nodes(either: Broker) -> None:
    peers = Peers(Settings(), SystemClock(), lambda: 0.5, [Address.parse(either.bootstrap)])
    request = MetadataRequest(topics=[])
    metadata = await peers.bootstrap[0].send(request, MetadataResponse, timeout_ms=TIMEOUT_MS)
    peers.place({broker.node_id: Address(broker.host, broker.port) for broker in metadata.brokers})
    for broker in metadata.brokers:
        answer = await peers.node(broker.node_id).send(request, MetadataResponse, timeout_ms=TIMEOUT_MS)
        assert answer.cluster_id == metadata.cluster_id
    await peers.close()


async def test_a_broker_that_is_killed_and_started_again_is_reached_again(either: Broker) -> None:
    async with peer_of(either) as peer, peer_of(either) as polled:
        await create(peer, "polled")
        poll = fetch("polled", 0, max_wait_ms=TIMEOUT_MS)
        polling = asyncio.create_task(polled.send(poll, FetchResponse, timeout_ms=2 * TIMEOUT_MS, max_version=BY_NAME))
        answered = 0
        enough = asyncio.Event()

        async def ask_on() -> PeerError:
            nonlocal answered
            while True:
                try:
                    await peer.send(MetadataRequest(topics=[]), MetadataResponse, timeout_ms=TIMEOUT_MS, max_dials=1)
                except PeerError as error:
                    return error
                answered += 1
                if answered == 1000:
                    enough.set()

        askers = [asyncio.create_task(ask_on()) for _ in range(20)]
        await enough.wait()
        either.kill9()
        assert {type(error) for error in await asyncio.gather(*askers)} == {PeerUnavailable}
        with pytest.raises(PeerUnavailable) as raised:
            await polling
        assert raised.value.sent
        starting = asyncio.create_task(asyncio.to_thread(either.start))
        request = DescribeClusterRequest(include_cluster_authorized_operations=False)
        assert (await peer.send(request, DescribeClusterResponse, timeout_ms=4 * TIMEOUT_MS)).error_code == 0
        await starting
