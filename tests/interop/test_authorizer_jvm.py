"""Compares decisions with Apache Kafka's StandardAuthorizer, on the same random entries (jvm/Authorizer.java)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count

import pytest

from bench.jars import apache_kafka
from coordinator.cluster.security.acl import AccessControlEntry
from coordinator.cluster.security.acls import Acls, Actor
from protocol.acl import Operation, PatternType, Permission, Resource
from tests.interop import jvm
from tests.interop.processes import run

pytestmark = pytest.mark.odradek_only

QUESTIONS_EACH = 100
"""Number of questions about one set of entries."""

NAMES = ["a", "ab", "abc", "abd", "b", "ba", "*", "*a", "!", "ab*", "kafka-cluster", "é", "z"]
ASKED_NAMES = [name for name in NAMES if name != "*a"]
"""Names in questions. Kafka ignores entries of all resources for a name that begins with an asterisk
(docs/differences.md)."""

PRINCIPALS = ["User:alice", "User:bob", "User:*", "Group:alice", "User:a:b"]
ASKING = [principal for principal in PRINCIPALS if principal != "User:*"]  # which throws in Kafka
HOSTS = [
    "*", "10.0.0.1", "10.0.0.2", "10.0.0.0/31", "10.0.0.2/32", "10.0.0.1/0", "010.000.0.0/8", "10.0.0.0/33", "10.0/8",
    "256.0.0.0/8", "10.0.0.0/-1", "2001:db8:0:0:0:0:0:1", "2001:db8::/64", "2001:db8::1/128", "[2001:db8::1]/+064",
    "::/0", "::ffff:10.0.0.0/104", "2001:db8::/129", "2001:db8::/", "2001:db8::/64/1", "2001:db8::1%1/64", "::a/b/c",
]  # fmt: skip
"""The hosts of entries; some are networks that only look like networks."""

ASKING_FROM = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "192.168.1.1", "2001:db8::1", "2001:db8::2", "2001:db9::1", "::1"]
OPERATIONS = [2, *Operation]
TYPES = [Resource.TOPIC, Resource.GROUP, Resource.CLUSTER]


def entries(chance: random.Random) -> Iterator[AccessControlEntry]:
    for _ in range(chance.choice([0, 1, 2, 5, 20, 100])):
        yield AccessControlEntry(
            chance.choice(TYPES),
            chance.choice(NAMES),
            chance.choice([PatternType.LITERAL, PatternType.PREFIXED]),
            chance.choice(PRINCIPALS),
            chance.choice(HOSTS),
            chance.choice(OPERATIONS),
            Permission.DENY if chance.random() < 0.3 else Permission.ALLOW,
        )


def question(chance: random.Random, index: Acls, allows_unknown: bool) -> tuple[str, bool]:
    """Returns a question for Kafka, and our answer."""
    actor = Actor(chance.choice(ASKING), chance.choice(ASKING_FROM))
    operation, resource, name = chance.choice([*Operation]), chance.choice(TYPES), chance.choice(ASKED_NAMES)
    words = f"{actor.principal}\t{actor.host}\t{int(operation)}\t{int(resource)}"
    if chance.random() < 0.1:
        return f"any\t{words}\n", index.allows_some(actor, operation, resource, allows_unknown=allows_unknown)
    return f"ask\t{words}\t{name}\n", index.allows(actor, operation, resource, name, allows_unknown=allows_unknown)


def transcript(sets: int, seed: int) -> tuple[str, list[bool]]:
    """Returns the entries and questions for Kafka, and our answers."""
    chance, numbers = random.Random(seed), count()
    lines: list[str] = []
    answers: list[bool] = []
    for _ in range(sets):
        allows_unknown = chance.random() < 0.3
        index = Acls()
        lines.append(f"new\tUser:admin\t{str(allows_unknown).lower()}\n")
        for entry in dict.fromkeys(entries(chance)):
            index.set(next(numbers).to_bytes(16, "big"), entry)
            lines.append("acl\t" + "\t".join(str(int(p) if isinstance(p, int) else p) for p in entry) + "\n")
        lines.append("load\n")
        for _ in range(QUESTIONS_EACH):
            line, answer = question(chance, index, allows_unknown)
            lines.append(line)
            answers.append(answer)
    return "".join(lines), answers


def check(sets: int, seed: int) -> None:
    lines, ours = transcript(sets, seed)
    command = jvm.java(f"{apache_kafka()}/*", str(jvm.HERE / "Authorizer.java"), flags=("-Dfile.encoding=UTF-8",))
    theirs = [line == b"1" for line in run(command, stdin=lines.encode(), timeout_s=300).stdout.splitlines()]
    questions = [line for line in lines.splitlines() if line.startswith(("ask", "any"))]
    assert len(theirs) == len(ours) == len(questions)
    different = [(questions[at], ours[at]) for at in range(len(ours)) if ours[at] is not theirs[at]]
    assert not different, (len(different), different[:5])
    assert {True, False} == set(ours)


def test_decisions_are_kafka_s() -> None:
    check(sets=50, seed=1)


@pytest.mark.security
def test_a_hundred_thousand_decisions_are_kafka_s() -> None:
    check(sets=1000, seed=2)
