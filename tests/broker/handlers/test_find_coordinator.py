"""Tests the keys of share partitions, as Java parses them, and requests with many keys."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from broker.handlers.find_coordinator import is_share_partition
from coordinator.cluster.controller import Asker
from protocol.errors import ErrorCode
from protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from tests.broker.inprocess import InProcess

TOPIC_ID = "A" * 22


@pytest.mark.parametrize("partition", ["0", "-1", "+1", "007", "2147483647", "-2147483648"])
@pytest.mark.parametrize("group", ["g", "a:b", "\u00a0"])
def test_a_group_a_topic_id_and_a_partition(group: str, partition: str) -> None:
    assert is_share_partition(f"{group}:{TOPIC_ID}:{partition}")


@pytest.mark.parametrize(
    "key",
    [
        *("", ":", "::", "g", f"g:{TOPIC_ID}", f":{TOPIC_ID}:0", f" \0:{TOPIC_ID}:0", "g:short:0", f"g:{TOPIC_ID}:x"),
        *(f"g:{TOPIC_ID}:", f"g:{TOPIC_ID}:0:0", f"g:{TOPIC_ID}:2147483648", f"g:{TOPIC_ID}:{'9' * 30_000}"),
        ":" * 30_000,
    ],
)
def test_anything_else_is_none(key: str) -> None:
    assert not is_share_partition(key)


async def test_a_topic_that_cannot_be_made_is_tried_once_for_all_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    async with InProcess(tmp_path) as broker:

        async def create(request: CreateTopicsRequest, asker: Asker) -> CreateTopicsResponse:
            tried.append(request)
            await asyncio.sleep(0)
            results = [
                CreatableTopicResult(name=topic.name, error_code=ErrorCode.POLICY_VIOLATION) for topic in request.topics
            ]
            return CreateTopicsResponse(topics=results)

        monkeypatch.setattr(broker.server.broker.topics, "create", create)
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[f"group-{number}" for number in range(50)])
        answer = await broker.client().ask(request, 4, FindCoordinatorResponse)
        assert {one.error_code for one in answer.coordinators} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
        assert len(answer.coordinators) == 50
    assert len(tried) == 1


async def test_a_kind_of_key_that_there_is_not_is_told_in_words(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        request = FindCoordinatorRequest(key="g", key_type=7, coordinator_keys=["g", "h"])
        answer = await broker.client().ask(request, 4, FindCoordinatorResponse)
        errors = {(one.error_code, one.error_message) for one in answer.coordinators}
        assert errors == {(ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST.message)}
