"""Tests small requests that list all entries: no callback of the event loop goes over all of them, however many there
are. The work of a callback is counted in lines of Python."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from broker.dispatch import call
from broker.handlers import describe_delegation_token, list_groups
from broker.request import turns
from protocol.acl import ANY, Operation, PatternType, Permission, Resource
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from protocol.messages.describe_acls import DescribeAclsRequest
from protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.list_transactions import ListTransactionsRequest
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.metadata_records.security import DelegationTokenRecord
from tests.broker.doors import OPTIONS, furnished
from tests.broker.extremes import TOPIC
from tests.broker.inprocess import InProcess, request_frame
from tests.broker.test_turns_of_many import ADMIN, FEW, LINES_OF_ENTRY, MANY, longest_of

pytestmark = pytest.mark.source_only

LATER_MS = 1 << 60


async def entries(broker: InProcess, count: int) -> None:
    made = [
        AclCreation(
            resource_type=Resource.TOPIC,
            resource_name=f"topic-{number}",
            resource_pattern_type=PatternType.LITERAL,
            principal="User:alice",
            host="*",
            operation=Operation.READ,
            permission_type=Permission.ALLOW,
        )
        for number in range(count)
    ]
    await broker.client().ask(CreateAclsRequest(creations=made), 3, CreateAclsResponse)


async def quotas(broker: InProcess, count: int) -> None:
    made = [
        EntryData(
            entity=[EntityData(entity_type="user", entity_name=f"user-{number}")],
            ops=[OpData(key="producer_byte_rate", value=1e6, remove=False)],
        )
        for number in range(count)
    ]
    request = AlterClientQuotasRequest(entries=made, validate_only=False)
    await broker.client().ask(request, 1, AlterClientQuotasResponse)


async def credentials(broker: InProcess, count: int) -> None:
    made = [
        ScramCredentialUpsertion(
            name=f"user-{number}", mechanism=1, iterations=4096, salt=b"salt", salted_password=bytes(32)
        )
        for number in range(count)
    ]
    request = AlterUserScramCredentialsRequest(deletions=[], upsertions=made)
    await broker.client().ask(request, 0, AlterUserScramCredentialsResponse)


async def tokens(broker: InProcess, count: int) -> None:
    for number in range(count):
        token = DelegationTokenRecord(
            owner="User:admin",
            requester="User:admin",
            renewers=[],
            issue_timestamp=0,
            max_timestamp=LATER_MS,
            expiration_timestamp=LATER_MS,
            token_id=f"token-{number}",
        )
        broker.server.broker.image.delegation_tokens.set(token)


async def transactions(broker: InProcess, count: int) -> None:
    await furnished(broker)  # its first transaction needs the coordinator's topic
    client = broker.client()
    for number in range(count):
        request = InitProducerIdRequest(transactional_id=f"transaction-{number}", transaction_timeout_ms=10_000)
        assert not (await client.ask(request, 4, InitProducerIdResponse)).error_code


async def groups(broker: InProcess, count: int) -> None:
    await furnished(broker)  # a group needs the coordinator's topic
    client = broker.client()
    for number in range(count):
        request = OffsetCommitRequest(
            group_id=f"group-{number}",
            topics=[
                OffsetCommitRequestTopic(
                    name=TOPIC,
                    partitions=[
                        OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
                    ],
                )
            ],
        )
        (topic,) = (await client.ask(request, 8, OffsetCommitResponse)).topics
        assert not topic.partitions[0].error_code


class Case(NamedTuple):
    """Creates the entries, and has the request that lists them."""

    make: Callable[[InProcess, int], Awaitable[None]]
    request: Any
    version: int


ALL_ENTRIES = DescribeAclsRequest(
    resource_type_filter=ANY, pattern_type_filter=ANY, operation=ANY, permission_type=ANY,
    resource_name_filter=None, principal_filter=None, host_filter=None,
)  # fmt: skip

CASES = [
    Case(entries, ALL_ENTRIES, 3),
    Case(quotas, DescribeClientQuotasRequest(components=[], strict=False), 1),
    Case(credentials, DescribeUserScramCredentialsRequest(users=None), 0),
    Case(tokens, DescribeDelegationTokenRequest(owners=None), 3),
    Case(groups, ListGroupsRequest(), 5),
    Case(transactions, ListTransactionsRequest(state_filters=[], producer_id_filters=[]), 2),
]


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends a turn after each batch of few entries, and encodes longer answers in a thread. Any client may ask for
    tokens, as if it were authenticated."""
    monkeypatch.setattr(turns, "_TURN_NS", 0)
    monkeypatch.setattr(turns, "ENTRIES", 4)
    monkeypatch.setattr(list_groups, "GROUPS", 4)
    monkeypatch.setattr(call, "MAX_ITEMS_ON_LOOP", 8)
    monkeypatch.setattr(describe_delegation_token, "may_request_tokens", lambda _: True)


@pytest.mark.parametrize("case", CASES, ids=[case.make.__name__ for case in CASES])
async def test_no_callback_lists_all_of_it(case: Case, tmp_path: Path, short_turns: None) -> None:
    frame = request_frame(case.request, case.version)
    lines, sizes = [], []
    for count in (FEW, MANY):
        options = {**OPTIONS, "delegation.token.secret.key": "the secret"}
        async with InProcess(tmp_path / str(count), options) as broker:
            await case.make(broker, count)
            await broker.settled()
            await longest_of(broker, frame, ADMIN)
            client = broker.client()
            client.send(frame)
            (answer,) = await client.frames(1)
            sizes.append(len(answer))
            lines.append(await longest_of(broker, frame, ADMIN))
    assert sizes[1] > 2 * sizes[0]
    assert lines[1] - lines[0] <= (MANY - FEW) * LINES_OF_ENTRY
