"""Tests that a handler that raises rejects the request with an answer that its client can read, for every API and
version."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from broker import handlers
from broker.dispatch.api import CONTROLLER, Api, Apis
from broker.dispatch.call import Call
from broker.dispatch.dispatcher import Dispatcher
from broker.dispatch.rejection import EMPTY, ERROR_FIELDS, rejection
from broker.handlers import controller
from broker.handlers.controller.envelope import answered
from broker.metadata.forwarding import body, envelope
from coordinator.cluster.requester import Requester
from protocol.api_key import ApiKey
from protocol.codec import decode
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.messages.envelope import EnvelopeResponse
from protocol.schema import fields_of, identity
from tests.broker.extremes import plausible
from tests.broker.inprocess import Client, InProcess, decode_response, request_frame
from tests.group_requests import offset_fetch

CODE = ErrorCode.POLICY_VIOLATION
TOPIC_ID = bytes(range(16))
SIZE_BYTES = 4
ALICE = Requester("User", "alice", "client", "127.0.0.1")


async def raise_at_once(_: Call[object]) -> object:
    raise KafkaError(CODE)


async def raise_after_a_wait(_: Call[object]) -> object:
    await asyncio.sleep(0)
    raise KafkaError(CODE)


class RaisingApis(Apis):
    """The rows of a table, in which all handlers except Envelope's raise."""

    def __init__(self, package: str, names: Sequence[str]) -> None:
        super().__init__(package, names)
        self.raising = raise_at_once

    def find(self, key: int) -> Api | None:
        row = super().find(key)
        is_envelope = row is not None and row.key is ApiKey.ENVELOPE
        return row if row is None or is_envelope else replace(row, handle=self.raising, here=None, wire=None)


class Refusing:
    """A broker whose handlers raise, and a dispatcher without short cuts."""

    def __init__(self, broker: InProcess) -> None:
        self.host = broker.server.broker
        self.connection = Client(broker.server).connection

    async def ask(self, apis: Apis, request: object, version: int, response: type) -> object:
        """Returns the decoded answer. Raises ProtocolError if the connection is closed."""
        self.host.apis = apis
        dispatcher = Dispatcher(self.host)
        self.host.answer_forwarded = dispatcher.answer
        frame = memoryview(request_frame(request, version))[SIZE_BYTES:]
        buffers = await answered(dispatcher.answer(self.connection, frame))
        answer = b"".join(buffers)[SIZE_BYTES:]
        return decode_response(answer, identity(type(request)).key, version, response)


@pytest.fixture
async def refusing(tmp_path: Path) -> AsyncIterator[Refusing]:
    async with InProcess(tmp_path) as broker:
        yield Refusing(broker)


def errors_of(message: object, version: int) -> Iterator[int]:
    """Yields the errors in a response that its version has fields for."""
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if version not in field.wire.versions:
            continue
        if field.name in ERROR_FIELDS:
            yield value
        elif field.kind.items is not None and field.kind.items.struct is not None:
            for item in value or ():
                yield from errors_of(item, version)


def expected_errors(api: Api, version: int) -> set[int]:
    """Returns the expected errors in the answer; none if the version has no field for them, as in Apache Kafka."""
    return set() if version in EMPTY.get(api.key, ()) else {int(CODE)}


@pytest.mark.parametrize("raising", [raise_at_once, raise_after_a_wait])
@pytest.mark.parametrize("table", [handlers, controller], ids=["broker", "controller"])
async def test_every_version_of_every_api_is_refused_with_the_error_that_its_handler_raises(
    refusing: Refusing, table: object, raising: object
) -> None:
    apis = RaisingApis("broker.handlers", table.NAMES)  # type: ignore[attr-defined]
    apis.raising = raising  # type: ignore[assignment]
    for api in apis:
        for version in range(api.versions.first, api.versions.last + 1):
            request = plausible(api.request, version, TOPIC_ID)
            if api.key is not ApiKey.ENVELOPE:
                answer = await refusing.ask(apis, request, version, api.response)
                assert set(errors_of(answer, version)) == expected_errors(api, version), (api.key.name, version)


async def test_a_forwarded_request_is_refused_inside_its_envelope(refusing: Refusing) -> None:
    apis = RaisingApis("broker.handlers", controller.NAMES)
    for api in (row for row in handlers.APIS if row.answered_by is CONTROLLER):
        for version in range(api.versions.first, api.versions.last + 1):
            request = plausible(api.request, version, TOPIC_ID)
            wrapped = envelope(request, version, ALICE)
            response = await refusing.ask(apis, wrapped, 0, EnvelopeResponse)
            assert isinstance(response, EnvelopeResponse)
            answer: object = decode(api.response, version, body(response, request, version))[0]
            assert set(errors_of(answer, version)) == {int(CODE)}, (api.key.name, version)


async def test_a_refused_produce_without_an_answer_closes_the_connection(refusing: Refusing) -> None:
    apis = RaisingApis("broker.handlers", handlers.NAMES)
    api = apis.find(ApiKey.PRODUCE)
    assert api is not None
    request = plausible(api.request, api.versions.last, TOPIC_ID)
    request.acks = 0
    with pytest.raises(ProtocolError, match="PRODUCE v13 failed"):
        await refusing.ask(apis, request, api.versions.last, api.response)


def test_a_request_without_a_list_is_refused_with_none_in_the_answer() -> None:
    api = handlers.APIS.find(ApiKey.OFFSET_FETCH)
    assert api is not None
    response = rejection(api, offset_fetch("g"), 8, KafkaError(CODE))
    assert [(group.group_id, group.error_code, group.topics) for group in response.groups] == [("g", CODE, [])]  # type: ignore[attr-defined]
