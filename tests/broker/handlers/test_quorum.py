"""Tests DescribeQuorum, AddRaftVoter, RemoveRaftVoter, UpdateFeatures, UnregisterBroker and UnregisterController in a
single-node cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.main import main
from protocol.errors import ErrorCode
from protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from protocol.messages.unregister_controller import UnregisterControllerRequest, UnregisterControllerResponse
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from protocol.types import NO_UUID
from tests.broker.inprocess import Client, InProcess

CLUSTER_ID = "b2RyYWRlay1pbnRlcm9wLg"

UPGRADE, SAFE_DOWNGRADE = 1, 2


def quorum(*partitions: tuple[str, int]) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        topics=[
            TopicData(topic_name=name, partitions=[PartitionData(partition_index=index)]) for name, index in partitions
        ]
    )


async def test_the_only_voter_leads(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    answer = await client.ask(quorum(("__cluster_metadata", 0)), 2, DescribeQuorumResponse)
    (partition,) = answer.topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.observers) == (ErrorCode.NONE, 1, [])
    (voter,) = partition.current_voters
    assert voter.log_end_offset == partition.high_watermark > 0
    assert [node.node_id for node in answer.nodes] == [1]


def formatted(folder: Path, *, is_dynamic: bool) -> Path:
    """Returns a directory of a node that is its quorum's only voter, according to its log or to its configuration."""
    address = "127.0.0.1:19093"
    quorum = f"bootstrap.servers={address}" if is_dynamic else f"voters=1@{address}"
    node = folder / "node.properties"
    node.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        f"listeners=PLAINTEXT://127.0.0.1:19092,CONTROLLER://{address}\nlog.dirs={folder}/data\n"
        f"controller.quorum.{quorum}\n"
    )
    standalone = ["--standalone"] if is_dynamic else []
    assert main(["format", "-t", CLUSTER_ID, "-c", str(node), *standalone]) == 0
    return folder / "data"


@pytest.mark.parametrize("is_dynamic", [False, True])
async def test_a_voter_of_the_configuration_has_no_directory(tmp_path: Path, is_dynamic: bool) -> None:
    async with InProcess(formatted(tmp_path, is_dynamic=is_dynamic)) as broker:
        answer = await broker.client().ask(quorum(("__cluster_metadata", 0)), 2, DescribeQuorumResponse)
    (voter,) = answer.topics[0].partitions[0].current_voters
    assert (voter.replica_directory_id != NO_UUID) is is_dynamic


async def test_with_voters_of_the_configuration_the_quorum_has_version_0(tmp_path: Path) -> None:
    """Apache Kafka gives the same answer, although it could upgrade."""
    async with InProcess(formatted(tmp_path, is_dynamic=False)) as broker:
        client = broker.client()
        for kind in (UPGRADE, SAFE_DOWNGRADE):
            assert await update(client, "kraft.version", 0, kind, validate_only=True) == ErrorCode.NONE
        downgraded = await update(client, "kraft.version", 1, SAFE_DOWNGRADE, validate_only=True)
        assert downgraded == ErrorCode.INVALID_UPDATE_VERSION
        upgraded = await update(client, "kraft.version", 1, UPGRADE)
        assert upgraded == ErrorCode.INVALID_UPDATE_VERSION


@pytest.mark.parametrize("partitions", [[("t", 0)], [("__cluster_metadata", 1)], [("__cluster_metadata", 0), ("t", 0)]])
async def test_there_is_no_other_quorum(partitions: list[tuple[str, int]], client: Client) -> None:
    answer = await client.ask(quorum(*partitions), 2, DescribeQuorumResponse)
    assert answer.nodes == []
    codes = {partition.error_code for topic in answer.topics for partition in topic.partitions}
    assert codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


async def test_the_only_voter_stays_the_only_one(client: Client) -> None:
    joining = AddRaftVoterRequest(
        cluster_id=None,
        timeout_ms=1000,
        voter_id=2,
        voter_directory_id=b"another's files-",
        listeners=[Listener(name="CONTROLLER", host="127.0.0.1", port=9093)],
    )
    added = await client.ask(joining, 1, AddRaftVoterResponse)
    assert added.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert "no listener that another voter could reach" in (added.error_message or "")
    leaving = RemoveRaftVoterRequest(cluster_id=None, voter_id=1, voter_directory_id=b"another's files-")
    removed = await client.ask(leaving, 0, RemoveRaftVoterResponse)
    assert removed.error_code == ErrorCode.VOTER_NOT_FOUND


async def update(client: Client, name: str, level: int, kind: int, *, validate_only: bool = False) -> int:
    updates = [FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)]
    request = UpdateFeaturesRequest(feature_updates=updates, timeout_ms=1000, validate_only=validate_only)
    return (await client.ask(request, 2, UpdateFeaturesResponse)).error_code


async def test_a_feature_goes_down_only_when_told_to(broker: InProcess, client: Client) -> None:
    image = broker.server.broker.image
    assert await update(client, "group.version", 0, UPGRADE) == ErrorCode.INVALID_UPDATE_VERSION
    assert await update(client, "group.version", 0, SAFE_DOWNGRADE, validate_only=True) == ErrorCode.NONE
    assert image.features["group.version"] == 1
    assert await update(client, "group.version", 0, SAFE_DOWNGRADE) == ErrorCode.NONE
    assert image.features.get("group.version", 0) == 0


async def test_features_that_are_not_there(client: Client) -> None:
    for name, level in (("no.such.feature", 1), ("metadata.version", 99)):
        assert await update(client, name, level, UPGRADE) == ErrorCode.INVALID_UPDATE_VERSION


async def test_an_unknown_broker_is_not_forgotten(client: Client) -> None:
    answer = await client.ask(UnregisterBrokerRequest(broker_id=7), 0, UnregisterBrokerResponse)
    assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


@pytest.mark.parametrize(("controller_id", "code"), [
    (1, ErrorCode.INVALID_REQUEST),
    (7, ErrorCode.CONTROLLER_ID_NOT_REGISTERED),
])  # fmt: skip
async def test_neither_the_active_controller_nor_an_unknown_one_is_forgotten(
    controller_id: int, code: ErrorCode, client: Client
) -> None:
    request = UnregisterControllerRequest(controller_id=controller_id)
    answer = await client.ask(request, 0, UnregisterControllerResponse)
    assert (answer.error_code, bool(answer.error_message)) == (code, True)
