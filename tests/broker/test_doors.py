"""Tests every version of every API with an authorizer and without access control entries: nothing is changed, and
nothing is revealed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from broker.config.authorization import STANDARD_AUTHORIZER
from broker.dispatch.api import CONTROLLER
from broker.handlers import APIS
from broker.handlers.controller import CONTROLLER_APIS
from broker.metadata.forwarding import body, envelope
from broker.request.context import ClientConnection, Principal
from coordinator.cluster.requester import Requester
from programs.run.controller_server import ControllerServer
from protocol.api_key import ApiKey
from protocol.codec import decode
from protocol.errors import ProtocolError
from protocol.messages.envelope import EnvelopeResponse
from protocol.messages.produce import ProduceResponse
from tests.broker.asking import batch, produce_request
from tests.broker.controllers import serving_controller
from tests.broker.doors import EVE, OPTIONS, SECRET, doors, findings, is_denied, pair
from tests.broker.extremes import TOPIC, plausible
from tests.broker.inprocess import LONG_S, InProcess, decode_response, request_frame

SIZE_BYTES = 4
BROKER = Principal("User", "broker")
UNAUTHORIZED = {
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.LIST_GROUPS,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.LIST_TRANSACTIONS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
}
"""APIs that reveal or change something at once if their rules are not applied."""


async def test_nothing_is_changed_and_nothing_is_told(tmp_path: Path) -> None:
    async with pair(tmp_path) as brokers:
        assert await findings(brokers, APIS) == []


async def test_a_door_without_a_rule_is_noticed(tmp_path: Path) -> None:
    async with pair(tmp_path) as brokers:
        for broker in (brokers.full, brokers.empty):
            broker.server.broker.authorizer = None
        apis = (api for api in APIS if api.key in UNAUTHORIZED)
        ending_transactions_last = sorted(apis, key=lambda api: api.key is ApiKey.INIT_PRODUCER_ID)
        problems = await findings(brokers, ending_transactions_last)
        assert {problem.partition(" ")[0] for problem in problems} == {key.name for key in UNAUTHORIZED}


async def test_a_super_user_may_do_everything(tmp_path: Path) -> None:
    async with InProcess(tmp_path, OPTIONS) as broker:
        await broker.create_topic(TOPIC, 1)
        client = broker.client()
        client.connection.principal = Principal("User", "admin")
        answer = await client.ask(produce_request(TOPIC, (0, batch(SECRET))), 12, ProduceResponse)
        assert answer.responses[0].partition_responses[0].error_code == 0


@pytest.fixture
async def controller(tmp_path: Path) -> AsyncIterator[ControllerServer]:
    options = {"authorizer_class_name": STANDARD_AUTHORIZER, "super_users": str(BROKER)}
    async with serving_controller(tmp_path, **options) as server:
        yield server


async def answered(server: ControllerServer, principal: Principal, request: object, version: int) -> bytes:
    """Returns the answer of a controller; None if the controller would close the connection."""
    connection = ClientConnection("CONTROLLER", lambda _, answer: answer)
    connection.principal = principal
    (listener,) = server.listeners
    frame = memoryview(request_frame(request, version))[SIZE_BYTES:]
    try:
        answer: Any = listener.answer(connection, frame)
    except ProtocolError:
        return b""
    if not isinstance(answer, list):
        ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        answer.begin(ended.set_result)
        answer = await asyncio.wait_for(ended, LONG_S)
    return b"" if isinstance(answer, ProtocolError) else b"".join(answer)[SIZE_BYTES:]


async def test_a_controller_tells_nothing_and_changes_nothing(controller: ControllerServer) -> None:
    offset = controller.part.log.end_offset
    problems = []
    for door in doors(api for api in CONTROLLER_APIS if api.authorize.requirements):
        request = plausible(door.api.request, door.version, bytes(16))
        frame = await answered(controller, EVE, request, door.version)
        if frame and not is_denied(decode_response(frame, door.api.key, door.version, door.api.response)):
            problems.append(f"{door} is answered")
    assert (problems, controller.part.log.end_offset) == ([], offset)


async def test_nor_does_it_for_a_client_whose_request_a_broker_forwards(controller: ControllerServer) -> None:
    offset = controller.part.log.end_offset
    eve = Requester("User", "eve", "a client", "10.0.0.1")
    problems = []
    for door in doors(api for api in APIS if api.answered_by is CONTROLLER):
        request = plausible(door.api.request, door.version, bytes(16))
        frame = await answered(controller, BROKER, envelope(request, door.version, eve), 0)
        wrapped = decode_response(frame, ApiKey.ENVELOPE, 0, EnvelopeResponse)
        answer: Any = None
        answer, _ = decode(door.api.response, door.version, body(wrapped, request, door.version))
        if not is_denied(answer):
            problems.append(f"{door}: {answer}")
    assert (problems, controller.part.log.end_offset) == ([], offset)
