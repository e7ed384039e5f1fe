"""Tests the control server: its answers, and that no broker has one unless it is configured."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.clock import SystemClock
from broker.config import BrokerConfig
from broker.config.sources import ConfigProblems, from_assignments, load
from broker.dispatch.dispatcher import Dispatcher
from storage.disk import OsDisk
from tests.broker.inprocess import InProcess
from tests.programs.control.controlled import Controlled


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Controlled]:
    async with Controlled(tmp_path) as controlled:
        yield controlled


async def test_requests_follow_each_other_on_one_connection(broker: Controlled) -> None:
    first = b"GET /v1/faults HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    assert (await broker.control.send(first * 2)).content == {"faults": []}
    assert (await broker.control.send(b"")).content == {"faults": []}


@pytest.mark.parametrize(
    ("method", "path", "content", "status", "reason"),
    [
        ("GET", "/v1/nowhere", None, 404, "there is no /v1/nowhere; the paths are /v1/acls, /v1/clock"),
        ("GET", "/", None, 404, "there is no /;"),
        ("PUT", "/v1/faults", {}, 405, "/v1/faults has no PUT; it has GET, POST, DELETE"),
        ("POST", "/v1/faults", [], 400, "the body is not a JSON object"),
        ("POST", "/v1/clock", {"advance_ms": "1h"}, 400, "advance_ms is '1h', not a whole number"),
        ("POST", "/v1/clock", {"advance_ms": -1}, 400, "advance_ms is -1"),
        ("POST", "/v1/clock", {"advance": 1}, 400, "'advance' is an unknown field; did you mean advance_ms?"),
        ("POST", "/v1/clock", {"advance_ms": 1}, 409, "can only use the machine's clock"),
        ("GET", "/v1/records", None, 400, "topic is missing"),
        ("GET", "/v1/records?topic=none", None, 404, "there is no topic none"),
        ("GET", "/v1/groups/none", None, 404, "there is no group none"),
        ("POST", "/v1/retention", {"topic": "none"}, 404, "there is no topic none"),
        ("GET", "/v1/requests?api=Fetsch", None, 400, "did you mean Fetch?"),
    ],
)
async def test_a_request_that_cannot_be_served_is_told_why(
    broker: Controlled, method: str, path: str, content: object, status: int, reason: str
) -> None:
    answer = await broker.control.ask(method, path, content)
    assert answer.status == status
    assert reason in answer.content["error"]


async def test_methods_that_are_served_are_told(broker: Controlled) -> None:
    assert (await broker.control.ask("DELETE", "/v1/clock")).headers["Allow"] == "GET, POST"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://example.com"}, 403),
        ({"Host": "example.com"}, 403),
        ({"Host": "example.com:80"}, 403),
        ({"Host": "localhost:80"}, 201),
        ({"Host": "127.0.0.1"}, 201),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/json; charset=utf-8"}, 201),
    ],
)
async def test_web_pages_have_no_access(broker: Controlled, headers: dict[str, str], status: int) -> None:
    assert (await broker.control.ask("POST", "/v1/faults", {"drop": True}, **headers)).status == status


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET http://elsewhere/ HTTP/1.1\r\n\r\n", 400),
        (b"POST /v1/flush HTTP/1.1\r\n\r\n", 411),
        (b"POST /v1/flush HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"POST /v1/flush HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", 413),
        (b"POST /v1/flush HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", 431),
    ],
)
async def test_bytes_that_are_no_request_end_the_connection(broker: Controlled, data: bytes, status: int) -> None:
    answer = await broker.control.send(data)
    assert (answer.status, answer.headers["Connection"]) == (status, "close")


async def test_a_body_that_is_no_json_is_refused(broker: Controlled) -> None:
    head = b"POST /v1/faults HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 6\r\n\r\n"
    answer = await broker.control.send(head + b"{nope}")
    assert (answer.status, answer.content["error"][:20]) == (400, "the body is not JSON")


async def test_a_socket_of_the_file_system_is_its_owner_s_alone(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    options = {"odradek.control.listener": f"unix:{path}"}
    async with Controlled(tmp_path / "data", options) as broker:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert (await broker.control.ask("GET", "/v1/clock", Host="whatever")).status == 200
    assert not path.exists()


async def test_a_broker_of_another_profile_has_no_control(tmp_path: Path) -> None:
    async with InProcess(tmp_path, {"odradek.profile": "test"}) as broker:
        assert broker.server.control is None
        assert broker.server.announced == ""
        assert isinstance(broker.server.broker.clock, SystemClock)
        assert type(broker.server.broker.logs.disk) is OsDisk
        (listener,) = broker.server.listeners
        assert isinstance(getattr(listener.answer, "__self__", None), Dispatcher)


@pytest.mark.parametrize(
    ("assignments", "reason"),
    [
        (["odradek.control.listener=127.0.0.1:0"], "needs odradek.profile=test"),
        (["odradek.profile=dev", "odradek.control.listener=127.0.0.1:0"], "needs odradek.profile=test"),
        (["odradek.profile=test", "odradek.control.listener=0.0.0.0:0"], "is not a loopback address"),
        (["odradek.profile=test", "odradek.control.listener=broker.example:0"], "is not a loopback address"),
        (["odradek.profile=test", "odradek.control.listener=127.0.0.1"], "is not host:port"),
        (["odradek.profile=test", "odradek.control.listener=127.0.0.1:99999"], "is not host:port"),
        (["odradek.profile=test", "odradek.control.listener=unix:a.socket"], "needs an absolute path"),
        (
            [
                "odradek.profile=test",
                "odradek.control.listener=127.0.0.1:0",
                "process.roles=controller",
                "node.id=1",
                "listeners=CONTROLLER://127.0.0.1:0",
                "controller.listener.names=CONTROLLER",
                "controller.quorum.voters=1@127.0.0.1:1",
            ],
            "needs a broker",
        ),
    ],
)
def test_the_option_is_refused_where_it_must_not_be(assignments: list[str], reason: str) -> None:
    with pytest.raises(ConfigProblems) as refused:
        load(from_assignments(assignments))
    assert any("odradek.control.listener" in problem and reason in problem for problem in refused.value.problems)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:0", ("127.0.0.1", 0, "")),
        ("localhost:81", ("127.0.0.1", 81, "")),
        ("[::1]:0", ("::1", 0, "")),
        ("unix:/run/broker.socket", ("", 0, "/run/broker.socket")),
    ],
)
def test_an_address_of_this_machine_alone_is_taken(text: str, address: tuple[str, int, str]) -> None:
    config = BrokerConfig.parse({"odradek.profile": "test", "odradek.control.listener": text})
    assert config.control_address == address
