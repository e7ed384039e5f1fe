"""One Odradek and one Apache Kafka for all tests of this folder, which get the same requests."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from bench.jars import APACHE_KAFKA
from protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from tests.interop.brokers import ALONE, ApacheKafka, Odradek
from tests.interop.conformance.compare import Both
from tests.interop.conformance.meant import MEANT
from tests.interop.conformance.peers import Pair, Peer, compared

API_VERSIONS_VERSION = 3
LAST_OF_3 = "3.9.2"
PROPERTIES = {
    "node.id": "1",
    "log.retention.ms": "-1",  # the scripts' records are old
    **ALONE,
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-page", action="store_true", default=False, help="write docs/records.md anew")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Compares tests marked `before_4`, whose versions Apache Kafka 4 has dropped, with 3.9 as well; with `alone`, only
    with 3.9."""
    if "pair" in metafunc.fixturenames:
        old = metafunc.definition.get_closest_marker("before_4")
        newest = () if old is not None and old.kwargs.get("alone") else (APACHE_KAFKA,)
        versions = (*newest, LAST_OF_3) if old is not None else newest
        metafunc.parametrize("pair", versions, indirect=True, scope="session")


@pytest.fixture(scope="session")
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    version: str = request.param
    folder = tmp_path_factory.mktemp("conformance")
    apache_kafka = ApacheKafka(folder / "apache", PROPERTIES, version=version)
    brokers = (Odradek(folder / "odradek", PROPERTIES), apache_kafka)
    with ThreadPoolExecutor(len(brokers)) as pool:
        list(pool.map(lambda broker: broker.start(), brokers))
    odradek, apache = (Peer(broker.name, broker.bootstrap, broker.data) for broker in brokers)
    yield Pair(odradek, apache, compared(served_by(apache), before_4=version == LAST_OF_3))
    for broker in brokers:
        broker.forget()


def served_by(peer: Peer) -> list[ApiVersion]:
    request = ApiVersionsRequest(client_software_name="conformance", client_software_version="1")
    answer = peer.quietly(request, API_VERSIONS_VERSION)
    assert isinstance(answer, ApiVersionsResponse)
    return answer.api_keys


@pytest.fixture
def both(pair: Pair) -> Both:
    return Both(pair, MEANT)
