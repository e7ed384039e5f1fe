"""Compares the server's assignors, and the hashes of topics and groups, with Apache Kafka's own
(jvm/Assignors.java)."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping

import pytest

from bench.jars import apache_kafka
from coordinator.cluster.topics.topic import PartitionRegistration, Topic
from coordinator.group.assignment import Assignment, GroupSpec, MemberSpec
from coordinator.group.assignors.builtin import ASSIGNORS
from coordinator.group.subscription_metadata import TopicWatch, topic_hash
from protocol.types import Uuid
from tests.interop import jvm
from tests.interop.processes import run

TOPIC_NUMBERS = range(2, 12)
"""Topic numbers that are so few and small that Java's hash sets of their ids are sorted."""

CASES = 150


def answers(questions: Iterable[Mapping[str, object]]) -> list[object]:
    """Returns Kafka's answer to each question."""
    lines = "".join(f"{json.dumps(question)}\n" for question in questions)
    command = jvm.java(f"{apache_kafka()}/*", str(jvm.HERE / "Assignors.java"))
    return [json.loads(line) for line in run(command, stdin=lines.encode()).stdout.splitlines()]


def topic_id(number: int) -> Uuid:
    return number.to_bytes(16, "big")


def numbered(assignment: Assignment) -> dict[str, list[int]]:
    return {str(int.from_bytes(one, "big")): sorted(partitions) for one, partitions in sorted(assignment.items())}


def question(assignor: str, spec: GroupSpec) -> dict[str, object]:
    return {
        "assignor": assignor,
        "homogeneous": spec.homogeneous,
        "topics": {str(int.from_bytes(one, "big")): count for one, count in spec.partition_counts.items()},
        "members": [
            {
                "id": member_id,
                "instance": member.instance_id,
                "topics": [int.from_bytes(one, "big") for one in member.topics],
                "assigned": numbered(member.assigned),
            }
            for member_id, member in spec.members.items()
        ],
    }


def spec_of(dice: random.Random, members: Mapping[str, MemberSpec], counts: Mapping[Uuid, int]) -> GroupSpec:
    subscriptions = {tuple(member.topics) for member in members.values()}
    owners: dict[Uuid, dict[int, str]] = {}
    for member_id, member in members.items():
        for one, partitions in member.assigned.items():
            owners.setdefault(one, {}).update(dict.fromkeys(partitions, member_id))
    return GroupSpec(members, counts, len(subscriptions) < 2, owners)


def a_life(dice: random.Random, assignor: str, homogeneous: bool) -> list[tuple[GroupSpec, Mapping[str, Assignment]]]:
    """Returns a group whose members come, go and change, with our assignment after each change."""
    counts = {topic_id(number): dice.randint(1, 12) for number in TOPIC_NUMBERS}
    shared = sorted(dice.sample(sorted(counts), dice.randint(1, len(counts))))
    members: dict[str, MemberSpec] = {}
    life = []
    for step in range(dice.randint(2, 8)):
        for _ in range(dice.randint(1, 4)):
            topics = shared if homogeneous else sorted(dice.sample(sorted(counts), dice.randint(1, 5)))
            instance = f"i{dice.randrange(100)}-{step}" if dice.random() < 0.3 else None
            members[f"m{dice.randrange(1000)}"] = MemberSpec(topics, instance_id=instance)
        for gone in dice.sample(sorted(members), dice.randrange(len(members))):
            del members[gone]
        for one in dice.sample(sorted(counts), 2):
            counts[one] += dice.randrange(3)
        spec = spec_of(dice, dict(members), dict(counts))
        assigned = ASSIGNORS[assignor](spec)
        life.append((spec, assigned))
        for member_id, member in members.items():
            ordered = {one: assigned[member_id][one] for one in sorted(assigned.get(member_id, {}))}
            members[member_id] = member._replace(assigned=ordered)
    return life


@pytest.mark.parametrize("homogeneous", [True, False], ids=["same topics", "different topics"])
@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_our_assignors_assign_as_kafkas_do(assignor: str, homogeneous: bool) -> None:
    lives = [a_life(random.Random(seed), assignor, homogeneous) for seed in range(CASES)]
    cases = [case for life in lives for case in life]
    expected = answers(question(assignor, spec) for spec, _ in cases)
    for (spec, assigned), answer in zip(cases, expected, strict=True):
        ours = {member_id: numbered(assigned.get(member_id, {})) for member_id in spec.members}
        assert ours == answer, question(assignor, spec)


def a_topic(dice: random.Random, name: str) -> Topic:
    topic = Topic(name, dice.randbytes(16))
    for index in range(dice.choice([1, 3, 17, 60, 500])):
        replicas = tuple(dice.sample(range(5), dice.randint(1, 5)))
        topic.partitions[index] = PartitionRegistration(replicas=replicas, isr=replicas, leader=replicas[0])
    return topic


def rack_of(broker_id: int) -> str | None:
    return (None, "east", "west", "größer", "east")[broker_id]


def test_our_hashes_are_kafkas() -> None:
    dice = random.Random(1)
    topics = {name: a_topic(dice, name) for name in ("foo", "bar", "a-longer.name_" * 8, "x" * 249, "z")}
    questions: list[dict[str, object]] = [
        {
            "name": topic.name,
            "high": int.from_bytes(topic.topic_id[:8], "big", signed=True),
            "low": int.from_bytes(topic.topic_id[8:], "big", signed=True),
            "racks": [
                [rack for replica in partition.replicas if (rack := rack_of(replica))]
                for partition in topic.partitions.values()
            ],
        }
        for topic in topics.values()
    ]
    hashes = {name: topic_hash(topic, rack_of) for name, topic in topics.items()}
    questions += [{"hashes": hashes}, {"hashes": {}}]

    class Table:
        def topic(self, name: str) -> Topic | None:
            return topics.get(name)

    watch = TopicWatch(Table(), rack_of)
    ours = [*hashes.values(), watch.group_hash([*topics, "not there"]), watch.group_hash(["not there"])]
    assert ours == answers(questions)
