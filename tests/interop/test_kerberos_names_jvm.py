"""Compares names of principals with Apache Kafka's KerberosShortNamer, on the same random rules
(jvm/KerberosNames.java)."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from bench.jars import apache_kafka
from broker.security.kerberos_names import LocalNames
from protocol.config import ConfigError
from protocol.sasl.exchange import SaslError
from tests.interop import jvm
from tests.interop.processes import run

pytestmark = [pytest.mark.odradek_only, pytest.mark.security]

NAMES_EACH = 30
"""Number of principals for each set of rules."""

PRIMARIES = [
    "alice",
    "Alice",
    "bob",
    "kafka",
    "App.service",
    "a",
    "aa",
    "b$1",
    "jürgen",
    "STRASSE",
    "straße",
    "ΑΒ",
    "x y",
    "",
]
HOSTS = ["host", "admin", "h.example.org", "A", ""]
REALMS = ["REALM", "OTHER", "realm", "EXAMPLE.COM", ""]
FORMATS = [
    *["$1", "$1@$0", "$2-$1"] * 6,
    "$1",
    "$2",
    "$0",
    "$1@$0",
    "$1/$2",
    "$2-$1",
    "$1$2",
    "x",
    "",
    "$",
    "$3",
    "$1$",
    "$12",
    "$01",
    "$$1",
    "$1;$1",
]
MATCHES = [
    *[".*", "[^@]*@[A-Z.]*", "[a-z-]+"] * 6,
    ".*",
    "a.*",
    ".*@REALM",
    ".*@OTHER",
    "[a-z]+",
    "alice|bob",
    "App\\..*",
    "",
    "^a",
    "b$",
    ".",
    "\\w+",
    "[^@]*@.*",
    "a{1,2}",
    "(?i:",
    "*",
    "[",
    "\\",
]
FROMS = [
    *["@.*", "a", "(.)(.*)", "-.*"] * 5,
    "a",
    "@.*",
    "App\\.(.*)",
    "(.)(.)",
    "(.*)",
    "^",
    "$",
    "x*",
    "",
    "[aeiou]",
    "(a)|(b)",
    "(?<who>[a-z]+)",
    "\\$",
    "[",
    "(",
    "ß",
    "\\.",
    ".",
]
TOS = [
    *["", "$1", "x"] * 6,
    "",
    "$1",
    "$2",
    "$0",
    "x",
    "$1$1",
    "$2$1",
    "$11",
    "$10",
    "$",
    "\\",
    "\\$1",
    "\\\\",
    "${who}",
    "${none}",
    "${",
    "a@b",
    "$1x",
    "$a",
    "$01",
]
PIECES = ["RULE:", "[1:$1]", "[2:$1]", "(a)", "s/a/b/", "g", "/", "L", "U", "DEFAULT", " ", "[", "]", "1", ":"]


def rule(chance: random.Random) -> str:
    """Returns a rule, in most cases a valid one."""
    kind = chance.random()
    if kind < 0.2:
        return "DEFAULT"
    if kind < 0.22:
        return "".join(chance.choices(PIECES, k=chance.randrange(1, 7))) or "x"
    text = f"RULE:[{chance.choice([1, 1, 1, 1, 2, 2, 2, 2, 0, 3])}:{chance.choice(FORMATS)}]"
    text += f"({chance.choice(MATCHES)})" if chance.random() < 0.5 else ""
    if chance.random() < 0.6:
        text += f"s/{chance.choice(FROMS)}/{chance.choice(TOS)}/{chance.choice(['', 'g'])}"
    return text + chance.choice(["", "", "/L", "/U", "L", "U", "/"])


def principal(chance: random.Random) -> str:
    host = f"/{chance.choice(HOSTS)}" if chance.random() < 0.4 else ""
    more = chance.choice(["/more", "@REALM"]) if chance.random() < 0.05 else ""
    return f"{chance.choice(PRIMARIES)}{host}{more}@{chance.choice(REALMS)}"


def ours(rules: list[str], realm: str) -> LocalNames | None:
    try:
        return LocalNames(rules, realm)
    except ConfigError:
        return None


def named(names: LocalNames | None, principal: str) -> str:
    try:
        return "!" if names is None else f"={names.name(principal)}"
    except SaslError:
        return "!"


def sets(chance: random.Random, count: int) -> Iterator[tuple[str, str]]:
    """Yields lines for Kafka's implementation, each with Odradek's answer."""
    for _ in range(count):
        rules, realm = [rule(chance) for _ in range(chance.choice([1, 1, 2, 3]))], chance.choice(REALMS)
        names = ours(rules, realm)
        yield "\t".join(["rules", realm, *rules]), "!" if names is None else "ok"
        for _ in range(NAMES_EACH):
            asked_for = principal(chance)
            yield f"name\t{asked_for}", named(names, asked_for)


def test_a_hundred_thousand_names_are_kafka_s() -> None:
    """Except for an empty name, which we reject, and for a Σ beside digits, which Java lower-cases to another σ."""
    lines, answers = zip(*sets(random.Random(3), 3_400), strict=True)
    source = str(jvm.HERE / "KerberosNames.java")
    command = jvm.java(f"{apache_kafka()}/*", source, flags=("-Dfile.encoding=UTF-8",))
    stdin = "".join(f"{line}\n" for line in lines).encode()
    theirs = run(command, stdin=stdin, timeout_s=300).stdout.decode().removesuffix("\n").split("\n")
    assert len(theirs) == len(answers)
    rules, different = "", []
    for line, own, other in zip(lines, answers, theirs, strict=True):
        rules = line if line.startswith("rules") else rules
        if own != ("!" if other == "=" else other):
            different.append((rules, line, own, other))
    assert not different, (len(different), different[:10])
    names = [answer for answer in answers if answer.startswith("=")]
    assert len(names) > 10_000
    assert len(set(names)) > 100
