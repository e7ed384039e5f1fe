"""Tests which names in heartbeats count as empty."""

from __future__ import annotations

import pytest

from coordinator.group.consumer import requests as consumer_requests
from coordinator.group.share import heartbeat as share_heartbeat
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest


@pytest.mark.parametrize("rack", ["", "  ", "\x00", "\t\x1f "])
def test_control_characters_alone_are_an_empty_rack(rack: str) -> None:
    consumer = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", member_epoch=1, rack_id=rack, topic_partitions=None
    )
    share = ShareGroupHeartbeatRequest(
        group_id="g", member_id="m", member_epoch=1, rack_id=rack, subscribed_topic_names=None
    )
    with pytest.raises(KafkaError, match="RackId can't be empty") as refused:
        consumer_requests.check(consumer, 1, ())
    assert refused.value.code == ErrorCode.INVALID_REQUEST
    with pytest.raises(KafkaError, match="RackId can't be empty"):
        share_heartbeat.check(share)


def test_a_space_that_java_does_not_trim_is_a_rack() -> None:
    share_heartbeat.check(
        ShareGroupHeartbeatRequest(
            group_id="g", member_id="m", member_epoch=1, rack_id="\u3000", subscribed_topic_names=None
        )
    )
