"""One Odradek and one Apache Kafka for all tests of this folder, asked the same things."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.interop.brokers import ApacheKafka, Odradek
from tests.interop.conformance.compare import Both
from tests.interop.conformance.meant import MEANT
from tests.interop.conformance.peers import Pair, Peer

API_VERSIONS_VERSION = 3
PROPERTIES = {
    "node.id": "1",
    "log.retention.ms": "-1",  # the scripts' records are old
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("conformance")
    brokers = (Odradek(folder / "odradek", PROPERTIES), ApacheKafka(folder / "apache", PROPERTIES))
    with ThreadPoolExecutor(len(brokers)) as pool:
        list(pool.map(lambda broker: broker.start(), brokers))
    odradek, apache = (Peer(broker.name, broker.bootstrap, broker.data) for broker in brokers)
    yield make_pair(odradek, apache)
    for broker in brokers:
        broker.forget()


def make_pair(odradek: Peer, apache: Peer) -> Pair:
    request = ApiVersionsRequest(client_software_name="conformance", client_software_version="1")
    answer = apache.quietly(request, API_VERSIONS_VERSION)
    assert isinstance(answer, ApiVersionsResponse)
    return Pair(odradek, apache, {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys})


@pytest.fixture
def both(pair: Pair) -> Both:
    return Both(pair, MEANT)
