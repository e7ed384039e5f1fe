"""Tests the levels of a broker's loggers, and the configs that a broker changes itself before it asks the
controller."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from broker.clock import SystemClock
from broker.dispatch.call import Call
from broker.handlers.incremental_alter_configs import API, set_own_loggers
from broker.logging import DEBUG, ERROR, INFO, Levels, levels
from protocol.codec import encode
from protocol.errors import ErrorCode
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.broker.inprocess import InProcess

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND = 0, 1, 2
NAME = "broker.network.connection"


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[InProcess]:
    async with InProcess(tmp_path, {"node.id": "1"}) as broker:
        yield broker


@pytest.fixture(autouse=True)
def own_levels() -> Iterator[None]:
    """Restores the levels of the process after the test."""
    yield
    for name in ("root", NAME):
        levels.unset(name) if name != "root" else levels.set(name, INFO)


def resource(kind: int, name: str, *changes: tuple[str, int, str | None]) -> AlterConfigsResource:
    configs = [AlterableConfig(name=key, config_operation=operation, value=value) for key, operation, value in changes]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


async def alter(
    broker: InProcess, *resources: AlterConfigsResource, validate_only: bool = False
) -> list[tuple[int, str | None]]:
    request = IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    response = await broker.client().ask(request, 1, IncrementalAlterConfigsResponse)
    return [(one.error_code, one.error_message) for one in response.responses]


async def described(broker: InProcess) -> dict[str, str | None]:
    loggers = DescribeConfigsResource(resource_type=LOGGER, resource_name="1", configuration_keys=None)
    response = await broker.client().ask(DescribeConfigsRequest(resources=[loggers]), 4, DescribeConfigsResponse)
    return {config.name: config.value for config in response.results[0].configs}


def test_a_logger_has_its_own_level_or_that_of_the_one_above() -> None:
    some = Levels()
    assert some.of("a.b.c") == INFO
    some.set("a", DEBUG)
    some.set("a.b", ERROR)
    assert [some.of(name) for name in ("a", "a.b.c", "a.x", "ab")] == [DEBUG, ERROR, DEBUG, INFO]
    some.unset("a.b")
    some.set("root", ERROR)
    assert [some.of(name) for name in ("a.b.c", "b")] == [DEBUG, ERROR]


def test_a_line_below_the_level_is_not_logged() -> None:
    program = """
from broker.logging import DEBUG, ERROR, get_logger, levels
log = get_logger('a.b').bind(peer='p')
log.debug('first')
levels.set('a', DEBUG)
log.debug('second')
levels.set('a.b', ERROR)
log.warning('third')
log.error('fourth')
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert [json.loads(line)["event"] for line in ended.stderr.splitlines()] == ["second", "fourth"]


async def test_levels_are_described_set_and_unset(broker: InProcess) -> None:
    assert (await described(broker))["root"] == "INFO"
    assert await alter(broker, resource(LOGGER, "1", (NAME, SET, "DEBUG"), ("root", SET, "ERROR"))) == [(0, None)]
    now = await described(broker)
    assert (now[NAME], now["root"], now["broker.dispatch.route"]) == ("DEBUG", "ERROR", "ERROR")
    assert await alter(broker, resource(LOGGER, "1", (NAME, DELETE, None))) == [(0, None)]
    assert (await described(broker))[NAME] == "ERROR"


async def test_a_change_that_is_only_checked_is_not_made(broker: InProcess) -> None:
    assert await alter(broker, resource(LOGGER, "1", (NAME, SET, "DEBUG")), validate_only=True) == [(0, None)]
    assert (await described(broker))[NAME] == "INFO"


@pytest.mark.parametrize(("name", "changes", "code", "message"), [
    ("1", (("root", SET, "LOUD"),), ErrorCode.INVALID_CONFIG, "Cannot set the log level of root to LOUD as it is not a "
     "supported log level. Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"),
    ("1", (("root", SET, "info"),), ErrorCode.INVALID_CONFIG, None),
    ("1", (("nobody", SET, "INFO"),), ErrorCode.INVALID_CONFIG, "Logger nobody does not exist!"),
    ("1", (("nobody", DELETE, None),), ErrorCode.INVALID_CONFIG, "Logger nobody does not exist!"),
    ("1", (("root", DELETE, None),), ErrorCode.INVALID_REQUEST,
     "Removing the log level of the root logger is not allowed"),
    ("1", (("root", APPEND, "INFO"),), ErrorCode.INVALID_REQUEST,
     "APPEND operation is not allowed for the BROKER_LOGGER resource"),
    ("1", (("root", 9, "INFO"),), ErrorCode.INVALID_REQUEST,
     "Unknown operation type 9 is not allowed for the BROKER_LOGGER resource"),
    ("1", (("root", SET, None),), ErrorCode.INVALID_REQUEST, "Null value not supported for : root"),
    ("1", (("root", SET, "INFO"), ("root", SET, "WARN")), ErrorCode.INVALID_REQUEST,
     "Error due to duplicate config keys"),
    ("7", (("root", SET, "INFO"),), ErrorCode.INVALID_REQUEST, "Unexpected node id. Expected 1, but received 7"),
    ("", (("root", SET, "INFO"),), ErrorCode.INVALID_REQUEST, "Node id must be an integer, but it is: "),
])  # fmt: skip
async def test_a_change_that_is_refused_changes_nothing(
    broker: InProcess, name: str, changes: tuple[tuple[str, int, str | None], ...], code: ErrorCode, message: str | None
) -> None:
    good = (NAME, SET, "DEBUG")
    ((refused, reason),) = await alter(broker, resource(LOGGER, name, good, *changes))
    assert refused == code
    assert message in (None, reason)
    assert (await described(broker))[NAME] == "INFO"


async def test_the_answers_are_in_the_order_of_the_resources(broker: InProcess) -> None:
    await broker.create_topic("t")
    answers = await alter(
        broker,
        resource(TOPIC, "t", ("retention.ms", SET, "5")),
        resource(LOGGER, "1", (NAME, SET, "DEBUG")),
        resource(TOPIC, "u", ("retention.ms", SET, "5")),
        resource(LOGGER, "7", (NAME, SET, "DEBUG")),
    )
    assert [code for code, _ in answers] == [0, 0, 3, ErrorCode.INVALID_REQUEST]


async def test_one_resource_twice_is_refused_twice(broker: InProcess) -> None:
    twice = (resource(LOGGER, "1", (NAME, SET, "DEBUG")), resource(LOGGER, "1", (NAME, SET, "WARN")))
    assert await alter(broker, *twice) == [(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")] * 2
    assert (await described(broker))[NAME] == "INFO"


def forwarded_call(*resources: AlterConfigsResource) -> Any:
    host: Any = SimpleNamespace(config=SimpleNamespace(node_id=1), authorizer=None, clock=SystemClock())
    context: Any = SimpleNamespace(version=1)
    request = IncrementalAlterConfigsRequest(resources=list(resources), validate_only=False)
    return Call(API, context, host, request)


@pytest.mark.source_only
async def test_what_is_left_is_forwarded_and_joined_again() -> None:
    forwarded = []

    async def forward(call: Any) -> bytes:
        forwarded.append([(one.resource_type, one.resource_name) for one in call.request.resources])
        responses = [
            AlterConfigsResourceResponse(error_code=0, error_message=None, resource_type=TOPIC, resource_name=name)
            for _, name in reversed(forwarded[-1])
        ]
        return encode(IncrementalAlterConfigsResponse(responses=responses), 1)

    call = forwarded_call(resource(TOPIC, "t"), resource(LOGGER, "2"), resource(TOPIC, "u"))
    response: Any = await set_own_loggers(call, forward)
    assert forwarded == [[(TOPIC, "t"), (TOPIC, "u")]]
    assert [(one.resource_name, one.error_code) for one in response.responses] == [
        ("t", 0), ("2", ErrorCode.INVALID_REQUEST), ("u", 0),
    ]  # fmt: skip


@pytest.mark.source_only
async def test_nothing_is_forwarded_where_nothing_is_left() -> None:
    async def forward(_: object) -> bytes:
        raise AssertionError("nothing is left for the controller")

    response: Any = await set_own_loggers(forwarded_call(resource(LOGGER, "x")), forward)
    assert [one.error_message for one in response.responses] == ["Node id must be an integer, but it is: x"]


@pytest.mark.source_only
async def test_a_request_that_is_the_controllers_alone_is_forwarded_as_it_is() -> None:
    async def forward(call: Any) -> bytes:
        return b"as the controller says"

    call = forwarded_call(resource(TOPIC, "t"), resource(BROKER, "1"), resource(BROKER, ""))
    assert await set_own_loggers(call, forward) == b"as the controller says"
