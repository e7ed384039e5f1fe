"""Tests Kafka 4.4's additions, which no other codec has yet, with frames written by hand from their KIPs."""

from __future__ import annotations

import pytest

from protocol.codec import decode, encode
from protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
    TopologyDescription,
    TopologyDescriptionGlobalStore,
    TopologyDescriptionNode,
    TopologyDescriptionSubtopology,
)
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from protocol.messages.unregister_controller import UnregisterControllerRequest, UnregisterControllerResponse

TOPIC_ID = bytes(range(16))


def node(name: str, node_type: int) -> TopologyDescriptionNode:
    return TopologyDescriptionNode(name=name, node_type=node_type, source_topics=["t"], stores=[], successors=[])


FRAMES = {
    "ApiVersions 5 says whom the client means to reach (KIP-1242)": (
        ApiVersionsRequest(client_software_name="n", client_software_version="v", cluster_id="c", node_id=1),
        5,
        "026e 0276 0263 00000001 00",
    ),
    "and need not": (ApiVersionsRequest(), 5, "01 01 00 ffffffff 00"),
    "its response is as in 4": (
        ApiVersionsResponse(error_code=0, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=5)]),
        5,
        "0000 02 0012 0000 0005 00 00000000 00",
    ),
    "TxnOffsetCommit 6 names topics by id (KIP-1319)": (
        TxnOffsetCommitRequest(
            transactional_id="t",
            group_id="g",
            producer_id=1,
            producer_epoch=2,
            generation_id_or_member_epoch=3,
            member_id="m",
            topics=[
                TxnOffsetCommitRequestTopic(
                    topic_id=TOPIC_ID,
                    partitions=[
                        TxnOffsetCommitRequestPartition(partition_index=4, committed_offset=5, committed_metadata=None)
                    ],
                )
            ],
        ),
        6,
        "0274 0267 0000000000000001 0002 00000003 026d 00"
        "02" + TOPIC_ID.hex() + "02 00000004 0000000000000005 ffffffff 00 00 00 00",
    ),
    "and so does its response": (
        TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    topic_id=TOPIC_ID, partitions=[TxnOffsetCommitResponsePartition(partition_index=4, error_code=3)]
                )
            ]
        ),
        6,
        "00000000 02" + TOPIC_ID.hex() + "02 00000004 0003 00 00 00",
    ),
    "DeleteGroups 3 asks as 2 does": (DeleteGroupsRequest(groups_names=["g"]), 3, "02 0267 00"),
    "and says why a group stays (KIP-1331)": (
        DeleteGroupsResponse(results=[DeletableGroupResult(group_id="g", error_code=68, error_message="m")]),
        3,
        "00000000 02 0267 0044 026d 00 00",
    ),
    "StreamsGroupHeartbeat 1 widens the recovery lag and asks for a description (KIP-1331)": (
        StreamsGroupHeartbeatResponse(
            error_code=0,
            member_id="m",
            member_epoch=1,
            heartbeat_interval_ms=2,
            task_offset_interval_ms=3,
            acceptable_recovery_lag=1000,
            status=None,
            topology_description_required=True,
            endpoint_information_epoch=4,
        ),
        1,
        "00000000 0000 00 026d 00000001 00000002 00000003 00000000000003e8 00 00 00 00 01 00000004 00 00",
    ),
    "StreamsGroupTopologyDescriptionUpdate describes nodes and stores (KIP-1331)": (
        StreamsGroupTopologyDescriptionUpdateRequest(
            group_id="g",
            member_id="m",
            topology_epoch=1,
            topology_description=TopologyDescription(
                subtopologies=[TopologyDescriptionSubtopology(subtopology_id="s", nodes=[node("a", 1)])],
                global_stores=[TopologyDescriptionGlobalStore(source=node("b", 1), processor=node("c", 2))],
            ),
        ),
        0,
        "0267 026d 00000001"
        "02 0273 02 0261 01 02 0274 00 01 01 00 00"
        "02 0262 01 02 0274 00 01 01 00  0263 02 02 0274 00 01 01 00 00"
        "00 00",
    ),
    "and gets an error or none": (
        StreamsGroupTopologyDescriptionUpdateResponse(error_code=25, error_message="m"),
        0,
        "00000000 0019 026d 00",
    ),
    "UnregisterController names the controller": (UnregisterControllerRequest(controller_id=7), 0, "00000007 00"),
    "and gets an error too": (UnregisterControllerResponse(error_code=0, error_message=None), 0, "00000000 0000 00 00"),
}


@pytest.mark.parametrize(("value", "version", "frame"), FRAMES.values(), ids=FRAMES)
def test_a_message_of_kafka_4_4_is_what_its_kip_says(value: object, version: int, frame: str) -> None:
    wire = bytes.fromhex(frame)
    assert encode(value, version) == wire
    assert decode(type(value), version, wire) == (value, len(wire))
