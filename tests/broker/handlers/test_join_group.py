"""Tests JoinGroup: requests that are rejected before they reach a group, and by the group."""

from __future__ import annotations

import pytest

from broker.handlers.join_group import MAX_PROTOCOLS
from protocol.errors import ErrorCode
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from tests.broker.inprocess import Client

LEAST_MS, MOST_MS = 6_000, 1_800_000


@pytest.mark.parametrize("session_timeout_ms", [-(1 << 31), -1, 0, LEAST_MS - 1, MOST_MS + 1, (1 << 31) - 1])
async def test_a_session_timeout_out_of_bounds_is_refused(client: Client, session_timeout_ms: int) -> None:
    request = JoinGroupRequest(
        group_id="g", session_timeout_ms=session_timeout_ms, member_id="m", protocol_type="consumer", protocols=[]
    )
    answer = await client.ask(request, 9, JoinGroupResponse)
    assert (answer.error_code, answer.member_id) == (ErrorCode.INVALID_SESSION_TIMEOUT, "m")


@pytest.mark.parametrize("extra", [1, 100_000])
async def test_more_protocols_than_a_member_may_have_are_rejected(client: Client, extra: int) -> None:
    protocols = [JoinGroupRequestProtocol(name=f"p{number}", metadata=b"") for number in range(MAX_PROTOCOLS + extra)]
    request = JoinGroupRequest(
        group_id="g", session_timeout_ms=LEAST_MS, member_id="m", protocol_type="consumer", protocols=protocols
    )
    answer = await client.ask(request, 9, JoinGroupResponse)
    assert (answer.error_code, answer.member_id) == (ErrorCode.INVALID_REQUEST, "m")
