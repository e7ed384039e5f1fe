"""Sends each API in each version without any permission, to a broker with much data and to an empty broker.

A client without permissions learns nothing if both brokers give the same answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from broker.config.authorization import STANDARD_AUTHORIZER
from broker.dispatch.api import Api
from broker.request.context import Principal
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.produce import ProduceResponse
from protocol.schema import fields_of
from tests.broker import test_extremes as extreme
from tests.broker.asking import batch, produce_request
from tests.broker.extremes import TOPIC, plausible
from tests.broker.inprocess import InProcess, decode_response, request_frame

EVE: Final = Principal("User", "eve")
SECRET: Final = b"the secret of the record"
OPTIONS: Final = {
    **extreme.OPTIONS,
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:admin; User:ANONYMOUS",
    "advertised.listeners": "PLAINTEXT://broker.example.org:9092",
    **{
        f"group.{protocol}.{limit}session.timeout.ms": "600000"
        for protocol in ("consumer", "share", "streams")
        for limit in ("", "max.")
    },
    "group.streams.initial.rebalance.delay.ms": "0",
}
"""Options of a broker that changes nothing by itself during the test."""

PRODUCING: Final = InitProducerIdRequest(transactional_id="transactional", transaction_timeout_ms=600_000)

DENIED: Final = frozenset({
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
    ErrorCode.INVALID_PRINCIPAL_TYPE,  # as below
    ErrorCode.INVALID_REQUEST,  # it says what is wrong with the request itself
})  # fmt: skip

FILTERED: Final = {
    ApiKey.LIST_GROUPS: "groups",
    ApiKey.LIST_TRANSACTIONS: "transaction_states",
    ApiKey.DESCRIBE_LOG_DIRS: "results",
}
"""The lists that leave out denied entries, without an error or beside one."""

OF_THE_BROKER: Final = frozenset({ApiKey.API_VERSIONS, ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})
"""Answers that differ between any two brokers, and are public."""


class Door(NamedTuple):
    """An API in one version."""

    api: Api
    version: int

    def __str__(self) -> str:
        return f"{self.api.key.name} v{self.version}"


def doors(apis: Iterable[Api]) -> Iterator[Door]:
    """Yields every version of every API of a table."""
    for api in apis:
        for version in range(api.versions.first, api.versions.last + 1):
            yield Door(api, version)


class Pair(NamedTuple):
    """A broker with a topic, records, groups and a producer, and an empty broker."""

    full: InProcess
    empty: InProcess
    topic_id: bytes


@asynccontextmanager
async def pair(directory: Path) -> AsyncIterator[Pair]:
    """Yields two brokers that report the same name and cluster."""
    async with InProcess(directory / "full", OPTIONS) as full, InProcess(directory / "empty", OPTIONS) as empty:
        empty.server.broker.image.cluster_id = full.server.broker.image.cluster_id
        yield Pair(full, empty, await furnished(full))


async def furnished(broker: InProcess) -> bytes:
    """Creates the data that requests name, and returns the topic's id."""
    topic_id = await broker.create_topic(TOPIC, 2)
    await extreme.furnish(broker)
    client = broker.client()
    await client.ask(produce_request(TOPIC, (0, batch(SECRET))), 12, ProduceResponse)
    producer = await client.ask(PRODUCING, 4, InitProducerIdResponse)
    joining = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="transactional",
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])],
    )
    joined = await client.ask(joining, 3, AddPartitionsToTxnResponse)
    assert set(codes(joined)) == {0}, joined
    return topic_id


async def findings(brokers: Pair, apis: Iterable[Api]) -> list[str]:
    """Returns what a client without permissions learns or changes."""
    problems: list[str] = []
    for door in doors(apis):
        before = state(brokers.full)
        frame = request_frame(plausible(door.api.request, door.version, brokers.topic_id), door.version)
        full, empty = [await answer_to_eve(broker, frame) for broker in (brokers.full, brokers.empty)]
        problems += (f"{door}: {problem}" for problem in lessons(door, full, empty))
        await brokers.full.settled()
        if state(brokers.full) != before:
            problems.append(f"{door}: something has changed")
    return problems


async def answer_to_eve(broker: InProcess, frame: bytes) -> bytes:
    """Returns the answer to a client without permissions; None if the connection is closed."""
    client = broker.client()
    client.connection.principal = EVE
    client.send(frame)
    return b"".join(await client.frames(1))


def state(broker: InProcess) -> dict[object, int]:
    """Returns the ends of the metadata log and of all partitions' logs, including the coordinators' topics."""
    logs: dict[object, int] = {one.name: one.log_end_offset for one in broker.server.broker.replicas}
    return {"metadata": broker.server.broker.image.offset, **logs}


def lessons(door: Door, full: bytes, empty: bytes) -> Iterator[str]:
    """Yields the differences between the answers of the broker with data and of the empty broker."""
    key = door.api.key
    if SECRET in full:
        yield "it has a record"
    if not full or not empty:
        if full != empty:
            yield "one of two closes the connection"
        return
    answer: Any = decode_response(full, key, door.version, door.api.response)
    other: Any = decode_response(empty, key, door.version, door.api.response)
    if key not in OF_THE_BROKER and content(answer) != content(other):
        yield f"it tells what is there: {answer}, and where nothing is: {other}"
    if key in FILTERED and getattr(answer, FILTERED[key]):
        yield f"it lists {answer}"
    elif door.api.authorize.requirements and key not in FILTERED and not is_denied(answer):
        yield f"it is answered: {answer}"


def is_denied(answer: object) -> bool:
    """True for an answer that consists only of denials."""
    leaf_codes = set(codes(answer))
    return bool(leaf_codes) and leaf_codes <= DENIED


def content(message: Any) -> object:
    """Returns the content of a message. Whether an id is unknown is no secret, because ids can't be guessed: like
    Kafka, the broker answers differently for unknown and for denied ids."""
    if isinstance(message, list):
        return [content(one) for one in message] or None  # no client tells the two apart
    if not hasattr(message, "__wire__"):
        return message
    values = {field.name: content(getattr(message, field.name)) for field in fields_of(type(message))}
    for name in filter(is_code, values):
        if values[name] == ErrorCode.UNKNOWN_TOPIC_ID:
            values[name] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return {**values, "error_message": None}


def codes(message: Any) -> Iterator[int]:
    """Yields the error codes of an answer that have no error codes below them."""
    inner: list[int] = []
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        for one in value if isinstance(value, list) else [value]:
            if hasattr(one, "__wire__"):
                inner += codes(one)
    own = [getattr(message, field.name) for field in fields_of(type(message)) if is_code(field.name)]
    if any(own) or not inner:
        yield from own
    else:
        yield from inner


def is_code(name: str) -> bool:
    return name in ("error_code", "partition_error_code")
