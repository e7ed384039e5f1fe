"""Tests that a broker's metrics have the names that dashboards for Kafka use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.clock import Clock
from broker.metrics import accepting
from broker.metrics.server import MAX_CONNECTIONS
from protocol.messages.fetch import FetchResponse
from protocol.messages.produce import ProduceResponse
from tests.broker.fetch.test_wire import ALL
from tests.broker.fetch.test_wire import request as fetch_request
from tests.broker.inprocess import InProcess
from tests.broker.metrics.scraping import OPEN_METRICS, OPTIONS, get, port_of, samples, scraped
from tests.broker.produce.test_wire import batch
from tests.broker.produce.test_wire import request as produce_request

DOCS = (Path(__file__).resolve().parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[InProcess]:
    async with InProcess(tmp_path, OPTIONS) as broker:
        yield broker


async def test_without_the_option_nothing_listens_and_nothing_is_timed(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        assert broker.server.metrics is None
        assert not broker.server.broker.interceptors.times.is_timed


async def test_a_page_is_the_same_in_both_formats(broker: InProcess) -> None:
    await broker.create_topic("t", 2)
    while "odradek_eventloop_latenessms{quantile=0.50}" not in await scraped(broker):
        pass  # the event loop's first timer adds it
    plain, rich = await get(broker), await get(broker, accept=OPEN_METRICS)
    assert plain.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert rich.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert rich.body.endswith("# EOF\n")
    assert samples(plain.body).keys() == samples(rich.body, is_open_metrics=True).keys()


async def test_what_is_produced_and_fetched_is_counted_by_topic_and_in_all(broker: InProcess) -> None:
    topic_id = await broker.create_topic("t")
    client, records = broker.client(), batch(3)
    await client.ask(produce_request(topic_id, (0, records)), 13, ProduceResponse)
    await client.ask(fetch_request(topic_id, (0, 0, ALL)), 13, FetchResponse)
    values = await scraped(broker)
    for labels in ("{}", "{topic=t}"):
        assert values[f"kafka_server_brokertopicmetrics_messagesin_total{labels}"] == 3
        assert values[f"kafka_server_brokertopicmetrics_bytesin_total{labels}"] == len(records)
        assert values[f"kafka_server_brokertopicmetrics_bytesout_total{labels}"] == len(records)
        assert values[f"kafka_server_brokertopicmetrics_totalproducerequests_total{labels}"] == 1
        assert values[f"kafka_server_brokertopicmetrics_totalfetchrequests_total{labels}"] == 1
    assert values["kafka_log_log_logendoffset{partition=0,topic=t}"] == 3
    assert values["kafka_log_log_size{partition=0,topic=t}"] == len(records)
    assert values["kafka_topic_partition_current_offset{partition=0,topic=t}"] == 3
    assert values["kafka_network_requestmetrics_totaltimems_count{request=Produce}"] == 1
    assert values["kafka_network_requestmetrics_totaltimems_count{request=Fetch}"] == 1
    assert values["kafka_network_requestmetrics_totaltimems{quantile=0.99,request=FetchConsumer}"] > 0


async def test_the_totals_keep_what_a_deleted_topic_had(broker: InProcess) -> None:
    topic_id = await broker.create_topic("t")
    await broker.client().ask(produce_request(topic_id, (0, batch())), 13, ProduceResponse)
    before = await scraped(broker)
    broker.server.broker.replicas.traffic.forget("t")
    after = await scraped(broker)
    total = "kafka_server_brokertopicmetrics_bytesin_total"
    assert before[f"{total}{{}}"] == after[f"{total}{{}}"] > 0
    assert f"{total}{{topic=t}}" not in after


async def test_a_single_broker_is_controller_and_leads_all(broker: InProcess) -> None:
    await broker.create_topic("t", 3)
    values = await scraped(broker)
    assert values["kafka_server_replicamanager_leadercount{}"] == 3
    assert values["kafka_server_replicamanager_partitioncount{}"] == 3
    assert values["kafka_server_replicamanager_underreplicatedpartitions{}"] == 0
    assert values["kafka_controller_kafkacontroller_activecontrollercount{}"] == 1
    assert values["kafka_controller_kafkacontroller_offlinepartitionscount{}"] == 0
    assert values["kafka_server_raftmetrics_current_state{current_state=leader}"] == 1
    assert values["kafka_server_kafkaserver_brokerstate{}"] == 3
    assert values["kafka_topic_partitions{topic=t}"] == 3
    assert values["kafka_brokers{}"] == 1
    assert values["process_resident_memory_bytes{}"] > 1 << 20


async def test_a_partition_below_its_min_isr_is_told(broker: InProcess) -> None:
    await broker.create_topic("t", min_insync_replicas="2")
    values = await scraped(broker)
    assert values["kafka_cluster_partition_underminisr{partition=0,topic=t}"] == 0, "one replica is all there is"
    assert values["kafka_cluster_partition_atminisr{partition=0,topic=t}"] == 1


async def test_health_and_readiness_follow_the_broker(broker: InProcess) -> None:
    assert (await get(broker, "/healthz")).status == 200
    assert (await get(broker, "/readyz")).status == 200
    next(iter(broker.server.broker.logs.dirs.values())).error = OSError("gone")
    unready = await get(broker, "/readyz")
    assert (unready.status, unready.body) == (503, "every log directory has failed\n")
    assert (await get(broker, "/healthz")).status == 200


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /nothing HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"405"),
        (b"GET /metrics\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 2000, b"431"),
    ],
)
async def test_a_bad_request_gets_its_status(broker: InProcess, request_bytes: bytes, status: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(broker))
    writer.write(request_bytes)
    assert (await reader.readline()).split()[1] == status
    writer.close()


async def test_every_name_is_in_the_docs(broker: InProcess) -> None:
    names = {line.split()[2] for line in (await get(broker)).body.splitlines() if line.startswith("# TYPE ")}
    assert len(names) > 40
    assert not {name for name in names if f"`{name}`" not in DOCS}


async def test_head_has_no_body(broker: InProcess) -> None:
    answer = await get(broker, method="HEAD")
    assert (answer.status, answer.body) == (200, "")
    assert int(answer.headers["content-length"]) > 1000


async def test_those_who_ask_together_get_one_page(broker: InProcess) -> None:
    assert broker.server.metrics is not None
    scraper = broker.server.metrics.scraper
    answers = await asyncio.gather(*(get(broker) for _ in range(MAX_CONNECTIONS)))
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body for answer in answers}) == 1
    assert scraper.pages == 1


async def no_pause(_: Clock, delay_ms: int) -> None:
    await asyncio.sleep(0)


async def test_a_thousand_half_open_connections_keep_no_scraper_out(
    broker: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accepting, "pause", no_pause)
    half_open = []
    for _ in range(1000):
        _, writer = await asyncio.open_connection("127.0.0.1", port_of(broker))
        writer.write(b"GET /metrics HT")
        half_open.append(writer)
    assert broker.server.metrics is not None
    assert broker.server.metrics.connection_count <= MAX_CONNECTIONS
    assert (await get(broker)).status == 200
    for writer in half_open:
        writer.close()
