"""Tests the ids of share group members: they must not be empty, nor longer than a UUID, as Java counts."""

from __future__ import annotations

import pytest

from broker.share.sessions import MAX_MEMBER_ID_LENGTH, member_id_of
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from tests.broker.inprocess import Client

LONGEST = "x" * MAX_MEMBER_ID_LENGTH


@pytest.mark.parametrize("text", ["x", LONGEST, "é" * MAX_MEMBER_ID_LENGTH, "😀" * (MAX_MEMBER_ID_LENGTH // 2)])
def test_an_id(text: str) -> None:
    assert member_id_of(text) == text


@pytest.mark.parametrize("text", [None, "", f"{LONGEST}x", "😀" * (MAX_MEMBER_ID_LENGTH // 2 + 1), "x" * 32_767])
def test_no_id(text: str | None) -> None:
    with pytest.raises(KafkaError) as raised:
        member_id_of(text)
    assert raised.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("member_epoch", [0, 1, -1])
async def test_a_heartbeat_of_no_id(client: Client, member_epoch: int) -> None:
    request = ShareGroupHeartbeatRequest(
        group_id="g", member_id=f"{LONGEST}x", member_epoch=member_epoch, subscribed_topic_names=["t"]
    )
    answer = await client.ask(request, 1, ShareGroupHeartbeatResponse)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
