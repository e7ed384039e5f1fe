"""Tests key stores on a file system that hangs: only requests that read them wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import uvloop

from broker.metadata.file_reads import MAX_FILE_READS
from broker.security import key_stores
from protocol.errors import ErrorCode
from protocol.messages import alter_configs as legacy
from protocol.messages import incremental_alter_configs as alter
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.broker.inprocess import LONG_S, Client, InProcess, decode_response, request_frame
from tests.broker.security.certificates import Authority, client_context

BROKER, TOPIC = 4, 2
LOCATION = "listener.name.secure.ssl.truststore.location"


class HungFiles:
    """Reads of files whose name begins with "hung"; they wait until `answer` is called."""

    def __init__(self) -> None:
        self.answered = threading.Event()
        self.began = asyncio.Event()
        self.reads = 0
        self._loop = asyncio.get_running_loop()

    def read(self, path: str, max_bytes: int) -> bytes:
        if Path(path).name.startswith("hung"):
            assert threading.current_thread() is not threading.main_thread(), "the event loop reads files"
            self.reads += 1
            self._loop.call_soon_threadsafe(self.began.set)
            assert self.answered.wait(LONG_S)
        return Path(path).read_bytes()


@pytest.fixture(scope="module")
def event_loop_policy() -> asyncio.AbstractEventLoopPolicy:
    """Uses uvloop, because a broker's connections need it."""
    policy: asyncio.AbstractEventLoopPolicy = uvloop.EventLoopPolicy()
    return policy


@pytest.fixture
async def hung(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HungFiles]:
    files = HungFiles()
    monkeypatch.setattr(key_stores, "read_named_file", files.read)
    yield files
    files.answered.set()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("certificates"))
    made.issue("server")
    (made.directory / "hung.pem").write_bytes(made.certificate.read_bytes())
    return made


def options(authority: Authority) -> dict[str, str]:
    return {
        "listeners": "SECURE://127.0.0.1:0,OPEN://127.0.0.1:0",
        "listener.security.protocol.map": "SECURE:SSL,OPEN:PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.directory / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "ssl.client.auth": "requested",
    }


def with_trust_store(path: Path) -> alter.IncrementalAlterConfigsRequest:
    config = alter.AlterableConfig(name=LOCATION, config_operation=0, value=str(path))
    own = alter.AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=[config])
    size = alter.AlterableConfig(name="retention.ms", config_operation=0, value="1000")
    topic = alter.AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=[size])
    return alter.IncrementalAlterConfigsRequest(resources=[own, topic], validate_only=False)


async def codes(client: Client) -> list[int]:
    """Returns the error codes of the answer to a change that had to wait."""
    (frame,) = await client.frames(1)
    answer = decode_response(frame, 44, 1, alter.IncrementalAlterConfigsResponse)
    return [one.error_code for one in answer.responses]


async def test_others_are_served_while_a_change_waits_for_its_stores(
    tmp_path: Path, authority: Authority, hung: HungFiles
) -> None:
    async with InProcess(tmp_path, options(authority)) as broker:
        await broker.create_topic("t")
        changing, other = broker.client(), broker.client()
        changing.send(request_frame(with_trust_store(authority.directory / "hung.pem"), 1))
        async with asyncio.timeout(LONG_S):
            await hung.began.wait()
        assert (await other.ask(MetadataRequest(topics=None), 9, MetadataResponse)).brokers
        config = legacy.AlterableConfig(name="retention.ms", value="2000")
        topic = legacy.AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=[config])
        request = legacy.AlterConfigsRequest(resources=[topic], validate_only=False)
        (changed,) = (await other.ask(request, 1, legacy.AlterConfigsResponse)).responses
        assert changed.error_code == 0
        assert not changing.wire.sent
        hung.answered.set()
        assert await codes(changing) == [0, 0]
        await broker.settled()


async def test_beyond_the_most_reads_a_change_is_rejected_and_the_rest_of_its_request_is_done(
    tmp_path: Path, authority: Authority, hung: HungFiles
) -> None:
    async with InProcess(tmp_path, options(authority)) as broker:
        await broker.create_topic("t")
        waiting = [broker.client() for _ in range(MAX_FILE_READS)]
        for client in waiting:
            client.send(request_frame(with_trust_store(authority.directory / "hung.pem"), 1))
        beyond = broker.client()
        answer = await beyond.ask(
            with_trust_store(authority.directory / "hung.pem"), 1, alter.IncrementalAlterConfigsResponse
        )
        assert [one.error_code for one in answer.responses] == [ErrorCode.REQUEST_TIMED_OUT, 0]
        assert "is a file system hung?" in (answer.responses[0].error_message or "")
        hung.answered.set()
        for client in waiting:
            assert await codes(client) == [0, 0]
        await broker.settled()


async def test_connections_get_the_last_certificates_while_a_renewal_waits(
    tmp_path: Path, authority: Authority, hung: HungFiles
) -> None:
    async with InProcess(tmp_path, options(authority)) as broker:
        live, port = broker.server.broker.live_config, broker.server.advertised[0].port
        live.layers = live.layers.changed(broker={LOCATION: str(authority.directory / "hung.pem")})
        async with asyncio.timeout(LONG_S):
            await hung.began.wait()
            _, writer = await asyncio.open_connection("localhost", port, ssl=client_context(authority))
            writer.close()
        assert (await broker.client().ask(MetadataRequest(topics=None), 9, MetadataResponse)).brokers
        hung.answered.set()
        await broker.settled()
        assert hung.reads == 1


async def test_a_renewal_reads_the_newest_options_and_leaves_out_those_between(
    tmp_path: Path, authority: Authority, hung: HungFiles
) -> None:
    async with InProcess(tmp_path, options(authority)) as broker:
        live = broker.server.broker.live_config
        for number in range(3):
            store = {LOCATION: str(authority.directory / "hung.pem"), "log.retention.ms": str(number + 1)}
            live.layers = live.layers.changed(broker=store)
        async with asyncio.timeout(LONG_S):
            await hung.began.wait()
        live.layers = live.layers.changed(broker={**store, "log.retention.ms": "9"})
        live.layers = live.layers.changed(broker={**store, "log.retention.ms": "10"})
        hung.answered.set()
        await broker.settled()
        assert hung.reads == 2
