"""Tests the maximum number of state batches of a partition in WriteShareGroupState."""

from __future__ import annotations

from pathlib import Path

from broker.share.state_operations import MAX_STATE_BATCHES
from protocol.errors import ErrorCode
from protocol.messages.write_share_group_state import (
    PartitionData,
    StateBatch,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateData,
)
from tests.broker.doors import OPTIONS, furnished
from tests.broker.inprocess import InProcess


async def test_more_state_batches_than_a_partition_has_are_refused(tmp_path: Path) -> None:
    async with InProcess(tmp_path, OPTIONS) as served:
        topic_id = await furnished(served)
        batches = [
            StateBatch(first_offset=offset, last_offset=offset, delivery_state=0, delivery_count=1)
            for offset in range(MAX_STATE_BATCHES + 1)
        ]
        written = PartitionData(partition=0, state_epoch=0, leader_epoch=0, start_offset=0, state_batches=batches)
        request = WriteShareGroupStateRequest(
            group_id="sharing", topics=[WriteStateData(topic_id=topic_id, partitions=[written])]
        )
        answer = await served.client().ask(request, 0, WriteShareGroupStateResponse)
        assert [one.error_code for one in answer.results[0].partitions] == [ErrorCode.INVALID_REQUEST]
