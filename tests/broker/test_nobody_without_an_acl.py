"""With an authorizer and no access control entry nothing is changed, and nothing is told, by any version of any API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.config.authorization import STANDARD_AUTHORIZER
from broker.exchange.authorisation import NOTHING
from broker.exchange.context import Principal
from broker.handlers import APIS
from broker.requests.api import Api
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.produce import ProduceResponse
from protocol.schema import fields_of
from tests.broker.asking import batch, produce_request
from tests.broker.extremes import TOPIC, plausible
from tests.broker.inprocess import InProcess, decode_response, request_frame

EVE = Principal("User", "eve")
SECRET = b"the secret of the record"
OPTIONS = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:admin; User:ANONYMOUS",
}

DENIED = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
    ErrorCode.INVALID_PRINCIPAL_TYPE,  # as above
    ErrorCode.INVALID_REQUEST,  # it says what is wrong with the request itself
}

FILTERED = {ApiKey.LIST_GROUPS: "groups", ApiKey.LIST_TRANSACTIONS: "transaction_states"}
"""The lists that leave out what may not be known, without an error."""


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[InProcess]:
    async with InProcess(tmp_path, OPTIONS) as broker:
        yield broker


def codes(message: Any) -> Iterator[int]:
    """Yields the error codes of an answer that have none of another below them."""
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


@pytest.mark.parametrize("api", [*APIS], ids=lambda api: api.key.name)
async def test_nothing_is_changed_and_nothing_is_told(broker: InProcess, api: Api) -> None:
    topic_id = await broker.create_topic(TOPIC, 2)
    await broker.client().ask(produce_request(TOPIC, (0, batch(SECRET))), 12, ProduceResponse)
    offset = broker.server.broker.image.offset
    for version in range(api.versions.first, api.versions.last + 1):
        client = broker.client()
        client.connection.principal = EVE
        client.send(request_frame(plausible(api.request, version, topic_id), version))
        (frame,) = await client.frames(1)
        answer = decode_response(frame, api.key, version, api.response)
        assert SECRET not in frame
        if api.requires == NOTHING:
            continue
        if api.key in FILTERED:
            assert getattr(answer, FILTERED[api.key]) == []
        elif api.key is ApiKey.DESCRIBE_LOG_DIRS:
            assert answer.results == []  # type: ignore[attr-defined]
        else:
            leaf_codes = set(codes(answer))
            assert leaf_codes, (version, answer)
            assert leaf_codes <= DENIED, (version, answer)
    await broker.settled()
    assert broker.server.broker.image.offset == offset
    assert broker.server.broker.replicas.leader(TOPIC, 0).log_end_offset == 1


async def test_a_super_user_may_do_everything(broker: InProcess) -> None:
    await broker.create_topic(TOPIC, 1)
    client = broker.client()
    client.connection.principal = Principal("User", "admin")
    answer = await client.ask(produce_request(TOPIC, (0, batch(SECRET))), 12, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == 0
