"""Tests the metrics of a controller without a broker, and of a process that is starting."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.clock import NS_PER_MS, SystemClock
from broker.metrics.endpoint import MetricsEndpoint
from programs.run.controller_server import ControllerServer
from storage.disk import OsDisk
from tests.broker.controllers import NODE, serving_controller
from tests.broker.metrics.scraping import samples


@pytest.fixture
async def controller(tmp_path: Path) -> AsyncIterator[ControllerServer]:
    options = {"odradek_metrics_listener": "127.0.0.1:0", "odradek_slow_request_ms": "700"}
    async with serving_controller(tmp_path, **options) as server:
        yield server


async def get(endpoint: MetricsEndpoint, path: str) -> tuple[int, str]:
    """Returns the status and the body."""
    url = f"http://127.0.0.1:{endpoint.port}{path}"

    def answer() -> tuple[int, str]:
        try:
            with urllib.request.urlopen(url, timeout=30) as page:
                return page.status, page.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    return await asyncio.to_thread(answer)


async def test_a_controller_tells_of_the_cluster_and_of_itself(controller: ControllerServer) -> None:
    assert controller.metrics is not None
    status, body = await get(controller.metrics, "/metrics")
    values = samples(body)
    assert status == 200
    assert values["kafka_controller_kafkacontroller_activecontrollercount{}"] == 1
    assert values["kafka_controller_kafkacontroller_offlinepartitionscount{}"] == 0
    assert values["kafka_server_raftmetrics_current_state{current_state=leader}"] == 1
    assert values["kafka_server_raftmetrics_current_leader{}"] == NODE
    assert values["kafka_server_raftmetrics_current_vote{}"] == NODE
    assert values["kafka_server_raftmetrics_high_watermark{}"] == controller.part.log.high_watermark > 0
    assert values["kafka_server_raftmetrics_log_end_epoch{}"] == controller.part.log.epoch
    assert values["kafka_server_raftmetrics_number_of_voters{}"] == 1
    assert values["kafka_server_raftmetrics_number_of_observers{}"] == 0
    assert values["kafka_server_raftmetrics_uncommitted_voter_change{}"] == 0
    assert 0 <= values["kafka_server_raftmetrics_poll_idle_ratio_avg{}"] <= 1
    assert values["kafka_server_raftmetrics_commit_latency_max{}"] >= 0
    committed = controller.part.log.high_watermark - 1
    assert values["kafka_controller_kafkacontroller_lastcommittedrecordoffset{}"] == committed
    assert values["kafka_controller_kafkacontroller_lastappliedrecordoffset{}"] == committed
    assert values["kafka_controller_kafkacontroller_controlledshutdownbrokercount{}"] == 0
    image = controller.part.cluster.image
    assert values["kafka_server_metadataloader_currentmetadataversion{}"] == image.metadata_version
    assert values["kafka_server_metadataloader_finalizedlevel{featureName=kraft.version}"] == 0
    assert values["kafka_server_metadataloader_currentcontrollerid{}"] == NODE
    assert values["kafka_server_snapshotemitter_latestsnapshotgeneratedbytes{}"] == 0
    assert values["kafka_server_socket_server_metrics_connection_count{listener=CONTROLLER,networkProcessor=0}"] == 0
    assert values["process_open_fds{}"] > 3
    assert not any(name.startswith(("kafka_server_brokertopicmetrics", "kafka_topic")) for name in values)
    assert "kafka_server_kafkaserver_brokerstate{}" not in values, "it is no broker"


async def test_a_controller_is_ready_once_it_serves(controller: ControllerServer) -> None:
    assert controller.metrics is not None
    assert await get(controller.metrics, "/readyz") == (200, "ready\n")
    assert await get(controller.metrics, "/healthz") == (200, "ok\n")


async def test_a_controller_times_its_requests_and_tells_of_slow_ones(controller: ControllerServer) -> None:
    times = controller.keeper.host.interceptors.times
    assert times.is_timed
    assert times.slow_ns == 700 * NS_PER_MS


async def test_a_process_that_starts_tells_how_far_it_is() -> None:
    endpoint = MetricsEndpoint(SystemClock(), OsDisk(), is_broker=True)
    await endpoint.listen("127.0.0.1", 0)
    status, body = await get(endpoint, "/metrics")
    assert (status, samples(body)["kafka_server_kafkaserver_brokerstate{}"]) == (200, 1)
    endpoint.recovers()
    endpoint.scraper.forget_pages()
    assert samples((await get(endpoint, "/metrics"))[1])["kafka_server_kafkaserver_brokerstate{}"] == 2
    assert await get(endpoint, "/readyz") == (503, "starting\n")
    assert (await get(endpoint, "/healthz"))[0] == 200
    endpoint.close()
