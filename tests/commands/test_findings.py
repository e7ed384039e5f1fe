"""Tests the doctor's findings for the facts of a cluster, and that a healthy cluster has none."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from commands.groups.facts import GroupFacts
from commands.groups.listing import CLASSIC, CONSUMER, SHARE, GroupDescription, GroupMember
from commands.state.examination import ClusterFacts, DiskFacts, GroupCourse
from commands.state.findings import CHECKS, ERROR, UNSEEN, WARNING, Diagnosis, DoctorLimits, findings
from commands.state.quorum import NOBODY, QuorumDescription, QuorumReplica
from protocol.messages.describe_cluster import DescribeClusterBroker
from protocol.messages.describe_quorum import Listener
from protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from protocol.types import NO_UUID, TopicPartition

NOW_MS = 1_800_000_000_000
LIMITS = DoctorLimits()
ORDERS = TopicPartition("orders", 0)


def orders(*partitions: tuple[int, list[int]]) -> list[MetadataResponseTopic]:
    """Returns a topic whose partitions have these leaders and in-sync replicas, of the replicas 1, 2 and 3."""
    listed = [
        MetadataResponsePartition(
            error_code=0, partition_index=index, leader_id=leader, replica_nodes=[1, 2, 3], isr_nodes=isr
        )
        for index, (leader, isr) in enumerate(partitions)
    ]
    return [MetadataResponseTopic(error_code=0, name="orders", partitions=listed)]


def broker(number: int, *, fenced: bool = False) -> DescribeClusterBroker:
    return DescribeClusterBroker(broker_id=number, host="h", port=1, is_fenced=fenced)


def quorum(leader: int, *ages_s: float) -> QuorumDescription:
    """Returns a quorum of voters from 1 on, each with the time since it caught up; a negative time means never."""
    voters = [
        QuorumReplica(node, True, 5, NOW_MS, -1 if age < 0 else NOW_MS - int(age * 1000))
        for node, age in enumerate(ages_s, 1)
    ]
    return QuorumDescription(leader, 1, 5, tuple(voters))


OLD, NEW = bytes(15) + b"\1", bytes(15) + b"\2"
ADDRESSES = {1: [Listener(name="CONTROLLER", host="h", port=1)]}


def of_controllers(
    voters: Sequence[tuple[int, bytes]], observers: Sequence[tuple[int, bytes]] = (), observed_ms: int = NOW_MS + 1
) -> ClusterFacts:
    """Returns a cluster with the broker 9 and these controllers, by id and directory; all have caught up."""
    replicas = [
        QuorumReplica(node, is_voter, 5, fetched_ms, NOW_MS, directory)
        for listed, is_voter, fetched_ms in ((voters, True, NOW_MS), ([*observers, (9, NEW)], False, observed_ms))
        for node, directory in listed
    ]
    return ClusterFacts(brokers=[broker(9)], quorum=QuorumDescription(1, 1, 5, tuple(replicas), ADDRESSES))


def group(
    lag: int, *members: str, kind: str = CLASSIC, committed: int = 0, state: str = "Stable", epoch: int = -1
) -> GroupFacts:
    listed = [GroupMember(name, None, name, "h", []) for name in members]
    return GroupFacts(
        GroupDescription("billing", kind, state, "range", 1, listed, epoch), {ORDERS: committed}, {ORDERS: lag}
    )


def course(before: GroupFacts, after: GroupFacts) -> ClusterFacts:
    return ClusterFacts(groups=[GroupCourse(before, after)], watched_ms=3000)


HANGING = {
    "topic": "orders",
    "partition": 0,
    "producer": 7,
    "epoch": 0,
    "start_offset": 42,
    "last_write": "2026-01-01T00:00:00.000Z",
}

SENTENCES: list[tuple[ClusterFacts, str, str, str]] = [
    (
        ClusterFacts(topics=orders((-1, [1]))),
        ERROR,
        "orders-0 has no leader, and can neither be read nor written: no in-sync replica runs on the brokers 1, 2, 3.",
        "odradek topic describe orders",
    ),
    (
        ClusterFacts(topics=orders((1, [1]), (1, [1])), min_isr={"orders": 2}),
        ERROR,
        "the partitions 0, 1 of orders have 1 in-sync replicas, fewer than the 2 of min.insync.replicas: producers "
        "with acks=all are rejected.",
        "odradek cluster describe",
    ),
    (
        ClusterFacts(topics=orders((1, [1, 2, 3]), (2, [2, 1]))),
        WARNING,
        "orders-1 has replicas that are not in sync, on the brokers 3.",
        "odradek topic describe orders",
    ),
    (
        ClusterFacts(brokers=[broker(1), broker(3, fenced=True)]),
        ERROR,
        "broker 3 is registered, but sends no heartbeats to the controllers.",
        "odradek cluster describe",
    ),
    (
        ClusterFacts(disks=[DiskFacts(1, "/data", True, None, None)]),
        ERROR,
        "broker 1 has lost its log directory /data: its replicas there are offline until the disk is repaired and the "
        "broker started again.",
        "odradek cluster describe",
    ),
    (
        ClusterFacts(disks=[DiskFacts(1, "/data", False, 200 << 30, 5 << 30)]),
        WARNING,
        "broker 1 has 2.5 % of its disk left at /data, 5.0 of 200.0 GiB.",
        "odradek topic alter TOPIC -c retention.bytes=N",
    ),
    (
        ClusterFacts(quorum=quorum(NOBODY)),
        ERROR,
        "the controllers have no leader: nothing about the cluster can change until more than half of them run.",
        "odradek cluster quorum",
    ),
    (
        ClusterFacts(quorum=quorum(1, 0, 0.5, 40)),
        ERROR,
        "controller 3 has not caught up with the leader for 40 s; no other of the 3 may fail.",
        "odradek cluster quorum",
    ),
    (
        ClusterFacts(quorum=quorum(1, 0, 0, 0, 0, -1)),
        WARNING,
        "controller 5 has not caught up with the leader ever; 1 more of the 5 may fail.",
        "odradek cluster quorum",
    ),
    (
        of_controllers([(1, OLD), (2, OLD), (3, OLD)], [(2, NEW)]),
        ERROR,
        "controller 2 runs with a new directory, AAAAAAAAAAAAAAAAAAAAAg, and doesn't vote: its former directory "
        "AAAAAAAAAAAAAAAAAAAAAQ is the voter. Remove that, then add the controller.",
        "odradek cluster controller remove 2 --directory AAAAAAAAAAAAAAAAAAAAAQ --yes",
    ),
    (
        of_controllers([(1, OLD)], [(2, NEW)]),
        WARNING,
        "controller 2 follows, but doesn't vote.",
        "odradek cluster controller add 2 --yes",
    ),
    (
        of_controllers([(1, OLD), (2, OLD)]),
        WARNING,
        "the quorum has 2 voters, of which none may fail, as with 1: add or remove one.",
        "odradek cluster controller add ID",
    ),
    (
        of_controllers([(1, OLD), (2, OLD), (3, OLD), (4, OLD)]),
        WARNING,
        "the quorum has 4 voters, of which 1 may fail, as with 3: add or remove one.",
        "odradek cluster controller add ID",
    ),
    (
        of_controllers([(1, NO_UUID), (2, NO_UUID), (3, NO_UUID)]),
        WARNING,
        "the voters are in the configuration (controller.quorum.voters): none can be added, removed or replaced.",
        "odradek feature upgrade kraft.version=1",
    ),
    (
        ClusterFacts(hanging=[HANGING]),
        ERROR,
        "a transaction of producer 7 has been hanging in orders-0 since 2026-01-01T00:00:00.000Z: "
        "consumers with read_committed can't read past offset 42.",
        "odradek txn abort orders:0 --start-offset 42",
    ),
    (
        course(group(0, "a", "b"), group(0, "b", "c", "d")),
        WARNING,
        "group billing rebalanced while it was watched for 3 s: 1 members left, 2 joined.",
        "odradek group members billing",
    ),
    (
        course(group(0, "a", kind=CONSUMER, epoch=4), group(0, "a", kind=CONSUMER, epoch=6)),
        WARNING,
        "group billing rebalanced while it was watched for 3 s: it is Stable with 1 members.",
        "odradek group members billing",
    ),
    (
        course(group(0, "a", state="PreparingRebalance"), group(0, "a", state="CompletingRebalance")),
        WARNING,
        "group billing rebalanced while it was watched for 3 s: it is CompletingRebalance with 1 members.",
        "odradek group members billing",
    ),
    (
        course(group(2000, state="Empty"), group(2000, state="Empty")),
        WARNING,
        "group billing has 2000 records left, 2000 of them in orders-0, and it has no members.",
        "odradek group describe billing",
    ),
    (
        course(group(2000, "a"), group(2500, "a")),
        WARNING,
        "group billing has 2500 records left, 2500 of them in orders-0, and it has committed nothing for 3 s.",
        "odradek group describe billing",
    ),
    (
        course(group(2000, "a"), group(2500, "a", committed=9)),
        WARNING,
        "group billing has 2500 records left, 2500 of them in orders-0, and the lag has grown by 500 in 3 s.",
        "odradek group describe billing",
    ),
    (
        course(group(2000, "a", kind=SHARE), group(2000, "a", kind=SHARE)),
        WARNING,
        "group billing has 2000 records left, 2000 of them in orders-0, and the lag has not fallen for 3 s.",
        "odradek share describe billing",
    ),
    (
        ClusterFacts(throttled_ms=70),
        WARNING,
        "a quota throttled this client for 70 ms; it applies to all clients of its user and client.id.",
        "odradek quota list",
    ),
    (
        ClusterFacts(unreachable={3: "broker 3 at c.example:9092: no route to host"}),
        ERROR,
        "broker 3 is not fenced, but this command can't reach it: broker 3 at c.example:9092: no route to host.",
        "odradek cluster describe",
    ),
    (
        ClusterFacts(unseen=[("transactions", "CLUSTER_AUTHORIZATION_FAILED: no")]),
        UNSEEN,
        "transactions could not be read: CLUSTER_AUTHORIZATION_FAILED: no.",
        "odradek acl list",
    ),
]


@pytest.mark.parametrize(("facts", "severity", "sentence", "command"), SENTENCES)
def test_a_thing_that_is_wrong_has_its_sentence(
    facts: ClusterFacts, severity: str, sentence: str, command: str
) -> None:
    (finding,) = [one for one in findings(facts, LIMITS) if one.sentence == sentence]
    assert (finding.severity, finding.command) == (severity, command)


def test_every_check_has_a_sentence_above() -> None:
    silent = {check.__name__ for check in CHECKS if not any(list(check(facts, LIMITS)) for facts, _, _, _ in SENTENCES)}
    assert not silent


@pytest.mark.parametrize(
    "facts",
    [
        ClusterFacts(),
        ClusterFacts(
            brokers=[broker(1)], topics=orders((1, [1, 2, 3])), min_isr={"orders": 2}, quorum=quorum(1, 0, 0.2, 1)
        ),
        ClusterFacts(disks=[DiskFacts(1, "/data", False, 100, 50), DiskFacts(1, "/old", False, None, None)]),
        of_controllers([(1, OLD), (2, OLD), (3, NEW)]),
        of_controllers([(1, NO_UUID)]),
        of_controllers([(1, OLD), (2, NEW), (3, OLD)], [(2, OLD)], NOW_MS - 1),
        course(group(2000, "a"), group(1500, "a", committed=500)),
        course(group(1000, state="Empty"), group(1000, state="Empty")),
        course(group(0, "b", "a"), group(0, "a", "b")),
    ],
)
def test_nothing_is_said_where_nothing_is_wrong(facts: ClusterFacts) -> None:
    assert findings(facts, LIMITS) == []


def test_a_single_replica_is_no_less_than_its_topic_can_have() -> None:
    alone = orders((1, [1]))
    alone[0].partitions[0].replica_nodes = [1]
    assert findings(ClusterFacts(topics=alone, min_isr={"orders": 2}), LIMITS) == []


def test_the_worst_comes_first() -> None:
    listed: list[Diagnosis] = findings(ClusterFacts(throttled_ms=1, unseen=[("x", "y")], quorum=quorum(NOBODY)), LIMITS)
    assert [one.severity for one in listed] == [ERROR, WARNING, UNSEEN]
