"""Tests changes of configs on a broker with remote controllers: it rejects some itself, and forwards the others."""

from __future__ import annotations

import threading
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from broker.clock import SystemClock
from broker.dispatch.call import Call
from broker.dispatch.host import Forwarding
from broker.dispatch.route import Route
from broker.handlers import APIS
from broker.metadata.file_reads import FileReads
from broker.request.context import ClientConnection, Context
from broker.request.log_limiter import LogLimiter
from coordinator.cluster.configs.resource import ResourceType
from coordinator.cluster.configs.rules import ConfigRules, FileCheck
from coordinator.cluster.requester import Requester
from programs.run.joining import rejected_configs
from protocol.api_key import ApiKey
from protocol.codec import decode, encode
from protocol.config import ConfigError
from protocol.errors import ErrorCode, KafkaError, error_code
from protocol.messages import alter_configs as legacy
from protocol.messages import incremental_alter_configs as incremental
from tests.coordinator.cluster import given

TOPIC, BROKER, LOGGER, NONE = 2, 4, 8, 77
NODE, VERSION = 2, 1
WORDS = SimpleNamespace(whole=(legacy, ApiKey.ALTER_CONFIGS), single=(incremental, ApiKey.INCREMENTAL_ALTER_CONFIGS))


def no_bad_values(_: str, configs: Any) -> FileCheck | None:
    if "bad" in configs.values():
        raise ConfigError("a bad value")
    return FileCheck(configs, no_store) if "store" in configs.values() else None


def no_store() -> None:
    assert threading.current_thread() is not threading.main_thread(), "the event loop reads files"
    raise KafkaError(ErrorCode.INVALID_REQUEST, "no store")


class Controllers:
    """A controller that accepts all forwarded changes."""

    def __init__(self) -> None:
        self.names: list[tuple[int, str]] = []

    async def forward(self, request: Any, version: int, requester: Requester) -> bytes:
        self.names = [(one.resource_type, one.resource_name) for one in request.resources]
        words = legacy if isinstance(request, legacy.AlterConfigsRequest) else incremental
        answers = [
            words.AlterConfigsResourceResponse(error_code=0, error_message=None, resource_type=kind, resource_name=name)
            for kind, name in reversed(self.names)
        ]
        response = getattr(words, type(request).__name__.replace("Request", "Response"))
        return encode(response(throttle_time_ms=3, responses=answers), version)


def resource(kind: int, name: str, *configs: tuple[str, str | None], words: Any = incremental) -> Any:
    operation = {} if words is legacy else {"config_operation": 0}
    made = [words.AlterableConfig(name=key, value=value, **operation) for key, value in configs]
    return words.AlterConfigsResource(resource_type=kind, resource_name=name, configs=made)


def forwarding_host(forwarding: Forwarding) -> Any:
    """Returns a replacement for a broker with remote controllers: it has what a dispatcher uses."""
    clock, config = SystemClock(), SimpleNamespace(node_id=NODE)
    return SimpleNamespace(
        forwarding=forwarding,
        forwards=True,
        authorizer=None,
        clock=clock,
        config=config,
        codec_threads=None,
        faults=LogLimiter(),
    )


async def altered(controllers: Controllers, key: ApiKey, *resources: Any) -> list[tuple[int, str, ErrorCode]]:
    """Sends the request to the broker, and returns its answer for each resource."""
    rules = ConfigRules(NODE, checkers={ResourceType.BROKER: no_bad_values})
    rejected = partial(rejected_configs, given.image(), rules, NODE, FileReads(SystemClock()))
    host = forwarding_host(Forwarding(controllers.forward, rejected))
    api = APIS.find(key)
    assert api is not None
    context = Context(ClientConnection("PLAINTEXT", lambda _, answer: answer), key, VERSION, 0, "c", 0)
    request = api.request(resources=list(resources), validate_only=False)
    answer: Any = await Route(api, host).handled(Call(api, context, host, request), 0)
    if isinstance(answer, bytes):
        answer, _ = decode(api.response, VERSION, answer)
    return [(one.resource_type, one.resource_name, error_code(one.error_code)) for one in answer.responses]


@pytest.mark.parametrize("which", ["whole", "single"])
async def test_a_broker_refuses_the_options_of_another_and_forwards_the_rest_in_their_order(which: str) -> None:
    controllers, (words, key) = Controllers(), getattr(WORDS, which)
    resources = [
        resource(TOPIC, "t", ("retention.ms", "5"), words=words),
        resource(BROKER, "3", ("log.cleaner.threads", "2"), words=words),
        resource(BROKER, str(NODE), ("log.cleaner.threads", "2"), words=words),
        resource(BROKER, "", ("log.cleaner.threads", "2"), words=words),
        resource(BROKER, "x", words=words),
        resource(NONE, "y", words=words),
    ]
    assert await altered(controllers, key, *resources) == [
        (TOPIC, "t", ErrorCode.NONE),
        (BROKER, "3", ErrorCode.INVALID_REQUEST),
        (BROKER, str(NODE), ErrorCode.NONE),
        (BROKER, "", ErrorCode.NONE),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (NONE, "y", ErrorCode.INVALID_REQUEST),
    ]
    assert controllers.names == [(TOPIC, "t"), (BROKER, str(NODE)), (BROKER, "")]


async def test_it_checks_its_own_options_and_leaves_a_topic_s_to_the_controller() -> None:
    controllers = Controllers()
    bad = ("x", "bad")
    assert await altered(
        controllers, ApiKey.INCREMENTAL_ALTER_CONFIGS, resource(BROKER, "2", bad), resource(TOPIC, "none", bad)
    ) == [(BROKER, "2", ErrorCode.INVALID_CONFIG), (TOPIC, "none", ErrorCode.NONE)]
    assert controllers.names == [(TOPIC, "none")]


async def test_it_reads_the_files_of_its_own_options_in_a_thread() -> None:
    controllers = Controllers()
    own = resource(BROKER, "2", ("x", "store"))
    answers = await altered(controllers, ApiKey.INCREMENTAL_ALTER_CONFIGS, own, resource(TOPIC, "t", ("x", "store")))
    assert answers == [(BROKER, "2", ErrorCode.INVALID_REQUEST), (TOPIC, "t", ErrorCode.NONE)]
    assert controllers.names == [(TOPIC, "t")]


async def test_a_request_of_which_nothing_is_left_is_not_forwarded() -> None:
    controllers = Controllers()
    doubled = [resource(TOPIC, "t"), resource(TOPIC, "t")]
    without = resource(TOPIC, "u", ("retention.ms", None))
    answers = await altered(controllers, ApiKey.INCREMENTAL_ALTER_CONFIGS, *doubled, without, resource(LOGGER, "1"))
    assert [code for _, _, code in answers] == [ErrorCode.INVALID_REQUEST] * 4
    assert controllers.names == []


async def test_a_request_without_anything_odd_goes_as_it_came() -> None:
    controllers = Controllers()
    resources = [resource(TOPIC, "t", ("retention.ms", "5")), resource(TOPIC, "u")]
    answers = await altered(controllers, ApiKey.INCREMENTAL_ALTER_CONFIGS, *resources)
    assert [code for _, _, code in answers] == [ErrorCode.NONE] * 2
    assert controllers.names == [(TOPIC, "t"), (TOPIC, "u")]
