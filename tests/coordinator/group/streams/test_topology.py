"""Tests topologies from requests and records, and the check of heartbeats.

The cases of topologies are those of Apache Kafka's StreamsTopologyTest and CoordinatorStreamsRecordHelpersTest.
"""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.group.streams.requests import check
from coordinator.group.streams.topology import CopartitionGroup, InternalTopicInfo, Subtopology, Topology
from protocol.codec import decode, encode
from protocol.coordinator_records.streams_group import StreamsGroupTopologyValue
from protocol.errors import ErrorCode, KafkaError
from protocol.messages import streams_group_describe as describe
from protocol.messages import streams_group_heartbeat as messages
from protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest


def topic(name: str, partitions: int = 0, replicas: int = 0, **configs: str) -> messages.TopicInfo:
    return messages.TopicInfo(
        name=name,
        partitions=partitions,
        replication_factor=replicas,
        topic_configs=[messages.KeyValue(key=key, value=value) for key, value in configs.items()],
    )


def subtopology(name: str, **fields: Any) -> messages.Subtopology:
    """Returns a subtopology of a request, with empty lists for what is not given."""
    lists = ("source_topics", "source_topic_regex", "state_changelog_topics", "repartition_sink_topics")
    empty: dict[str, Any] = {name: [] for name in (*lists, "repartition_source_topics", "copartition_groups")}
    return messages.Subtopology(subtopology_id=name, **(empty | fields))


def group(sources: list[int], repartition: list[int]) -> messages.CopartitionGroup:
    return messages.CopartitionGroup(
        source_topics=sources, source_topic_regex=[], repartition_source_topics=repartition
    )


SENT = messages.Topology(
    epoch=7,
    subtopologies=[
        subtopology(
            "b",
            source_topics=["s2", "s1"],
            state_changelog_topics=[topic("c2"), topic("c1", retention="5")],
            repartition_sink_topics=["r2", "r1"],
            repartition_source_topics=[topic("r0", 4, 3)],
            copartition_groups=[group([0, 1], [0])],
        ),
        subtopology("a", repartition_source_topics=[topic("r1"), topic("r2")], source_topics=["s1"]),
    ],
)


def test_a_topology_is_read_from_a_request() -> None:
    assert Topology.from_request(SENT) == Topology(
        7,
        {
            "b": Subtopology(
                "b",
                source_topics=("s2", "s1"),
                changelogs=(InternalTopicInfo("c2"), InternalTopicInfo("c1", configs=(("retention", "5"),))),
                repartition_sinks=("r2", "r1"),
                repartition_sources=(InternalTopicInfo("r0", 4, 3),),
                copartition_groups=(CopartitionGroup((0, 1), (), (0,)),),
            ),
            "a": Subtopology("a", ("s1",), repartition_sources=(InternalTopicInfo("r1"), InternalTopicInfo("r2"))),
        },
    )


def test_a_record_has_the_same_topology() -> None:
    read = Topology.from_request(SENT)
    value, _position = decode(StreamsGroupTopologyValue, 0, encode(read.record(), 0))
    assert Topology.from_record(value) == read
    assert [entry.subtopology_id for entry in value.subtopologies] == ["b", "a"]


def test_a_topology_with_another_order_of_topics_is_another() -> None:
    one, other = (
        messages.Topology(epoch=7, subtopologies=[subtopology("a", source_topics=names)])
        for names in (["s1", "s2"], ["s2", "s1"])
    )
    assert Topology.from_request(one) != Topology.from_request(other)


def test_the_required_topics_are_sources_and_changelogs() -> None:
    assert sorted(Topology.from_request(SENT).required_topics()) == ["c1", "c2", "r0", "r1", "r2", "s1", "s2"]


def test_copartitioned_topics_are_named() -> None:
    assert list(Topology.from_request(SENT).subtopologies["b"].copartitioned()) == [{"s1", "s2", "r0"}]


def test_a_topology_is_described_in_order() -> None:
    described = Topology.from_request(SENT).described()
    assert described.epoch == 7
    assert described.subtopologies is not None
    first, second = described.subtopologies
    assert (first.subtopology_id, second.subtopology_id) == ("a", "b")
    assert (second.source_topics, second.repartition_sink_topics) == (["s1", "s2"], ["r1", "r2"])
    assert second.repartition_source_topics == [
        describe.TopicInfo(name="r0", partitions=4, replication_factor=3, topic_configs=[])
    ]
    assert second.state_changelog_topics == [
        describe.TopicInfo(
            name="c1",
            partitions=0,
            replication_factor=0,
            topic_configs=[describe.KeyValue(key="retention", value="5")],
        ),
        describe.TopicInfo(name="c2", partitions=0, replication_factor=0, topic_configs=[]),
    ]


TWICE = [topic("t"), topic("t")]
TWO_CONFIGS = messages.TopicInfo(
    name="t",
    partitions=0,
    replication_factor=0,
    topic_configs=[messages.KeyValue(key="k", value="1"), messages.KeyValue(key="k", value="2")],
)


@pytest.mark.parametrize(
    ("subtopologies", "message"),
    [
        (
            [subtopology("a"), subtopology("b"), subtopology("a")],
            "The topology names the subtopology a more than once.",
        ),
        (
            [subtopology("a", state_changelog_topics=TWICE)],
            "The topology names the changelog topic t more than once.",
        ),
        (
            [subtopology("a", repartition_source_topics=TWICE)],
            "The topology names the repartition source topic t more than once.",
        ),
        (
            [subtopology("a", repartition_source_topics=[TWO_CONFIGS])],
            "The topology names the config of topic t k more than once.",
        ),
        (
            [subtopology("a", repartition_source_topics=[topic("r", -(2**31))])],
            "The repartition source topic r has -2147483648 partitions; the number can't be negative.",
        ),
        (
            [subtopology("a", source_topics=["s"], copartition_groups=[group([0, 1], [])])],
            "A copartition group of subtopology a has the index 1 into a list of 1 topics.",
        ),
        (
            [subtopology("a", source_topics=["s"], copartition_groups=[group([0], [-1])])],
            "A copartition group of subtopology a has the index -1 into a list of 0 topics.",
        ),
    ],
)
def test_a_topology_that_contradicts_itself_is_rejected(
    subtopologies: list[messages.Subtopology], message: str
) -> None:
    with pytest.raises(KafkaError) as error:
        Topology.from_request(messages.Topology(epoch=0, subtopologies=subtopologies))
    assert (error.value.code, error.value.message) == (ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def test_a_negative_epoch_is_rejected() -> None:
    with pytest.raises(KafkaError) as error:
        Topology.from_request(messages.Topology(epoch=-1, subtopologies=[]))
    assert error.value.code == ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH


def test_a_record_with_any_indexes_is_read() -> None:
    value = Topology(1, {"a": Subtopology("a", copartition_groups=(CopartitionGroup((9,)),))}).record()
    read = Topology.from_record(value)
    with pytest.raises(KafkaError):
        read.check()


def request(epoch: int, **fields: Any) -> StreamsGroupHeartbeatRequest:
    """Returns a heartbeat; with epoch 0 it joins."""
    owned: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    joining: dict[str, Any] = {"rebalance_timeout_ms": 1000, "topology": SENT, **owned} if epoch == 0 else {}
    values: dict[str, Any] = {"group_id": "g", "member_id": "m", "endpoint_information_epoch": 0} | joining | fields
    return StreamsGroupHeartbeatRequest(member_epoch=epoch, **values)


ONE_TASK = [messages.TaskIds(subtopology_id="a", partitions=[0])]
REGEX = messages.Topology(epoch=0, subtopologies=[subtopology("a", source_topic_regex=["s.*"])])
FIXED_CHANGELOG = messages.Topology(epoch=0, subtopologies=[subtopology("a", state_changelog_topics=[topic("c", 3)])])


@pytest.mark.parametrize(
    "heartbeat",
    [
        request(0),
        request(0, instance_id="i", rack_id="r"),
        request(5),
        request(5, active_tasks=ONE_TASK, standby_tasks=[], warmup_tasks=[]),
        request(-1),
        request(-2, instance_id="i"),
    ],
)
def test_a_heartbeat_is_valid(heartbeat: StreamsGroupHeartbeatRequest) -> None:
    check(heartbeat)


@pytest.mark.parametrize(
    ("heartbeat", "message"),
    [
        (request(0, member_id=""), "MemberId can't be empty."),
        (request(5, member_id=" "), "MemberId can't be empty."),
        (request(5, group_id=""), "GroupId can't be empty."),
        (request(5, instance_id=""), "InstanceId can't be empty."),
        (request(5, rack_id=""), "RackId can't be empty."),
        (request(0, rebalance_timeout_ms=-1), "RebalanceTimeoutMs must be provided in first request."),
        (request(0, active_tasks=ONE_TASK), "ActiveTasks must be empty when (re-)joining."),
        (request(0, active_tasks=None), "ActiveTasks must be empty when (re-)joining."),
        (request(0, standby_tasks=ONE_TASK), "StandbyTasks must be empty when (re-)joining."),
        (request(0, warmup_tasks=ONE_TASK), "WarmupTasks must be empty when (re-)joining."),
        (request(0, topology=None), "Topology must be non-null when (re-)joining."),
        (request(-2), "InstanceId can't be null."),
        (request(-3), "MemberEpoch is -3, but must be greater than or equal to -2."),
        (request(5, active_tasks=[]), "If one task-type is non-null, all must be non-null."),
        (request(5, standby_tasks=[], warmup_tasks=[]), "If one task-type is non-null, all must be non-null."),
        (request(5, topology=SENT), "Topology can only be provided when (re-)joining."),
        (request(-1, topology=SENT), "Topology can only be provided when (re-)joining."),
        (request(0, topology=REGEX), "Regular expressions for source topics are not supported yet."),
        (request(0, topology=REGEX, group_id=""), "Regular expressions for source topics are not supported yet."),
    ],
)
def test_an_invalid_heartbeat_is_rejected(heartbeat: StreamsGroupHeartbeatRequest, message: str) -> None:
    with pytest.raises(KafkaError) as error:
        check(heartbeat)
    assert (error.value.code, error.value.message) == (ErrorCode.INVALID_REQUEST, message)


def test_a_changelog_has_no_partition_count() -> None:
    with pytest.raises(KafkaError) as error:
        check(request(0, topology=FIXED_CHANGELOG))
    message = "Changelog topic c must have an undefined partition count, but it is set to 3."
    assert (error.value.code, error.value.message) == (ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
