"""Compares every option with Apache Kafka 4.4.0: name, type, default, bounds, importance, and how it may be changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from broker.config import BrokerConfig
from broker.config.layers import synonym_names
from broker.config.unsupported import REFUSED, why_ignored, why_refused
from broker.config.without_effect import WITHOUT_EFFECT
from coordinator.group.config import GroupConfig
from protocol.config import READ_ONLY, Option
from storage.config import LogConfig

BEYOND = (
    "odradek.",
    "super.users",
    "allow.everyone.if.no.acl.found",
    "zookeeper.",
    "broker.id.generation.enable",
    "reserved.broker.max.id",
)
"""Options that Apache Kafka 4.4.0 doesn't declare: Odradek's own, its authorizer's, Kafka 3's."""

OPTIONS: dict[str, Mapping[str, Option]] = {
    "broker": {**BrokerConfig.OPTIONS, **WITHOUT_EFFECT},
    "topic": LogConfig.OPTIONS,
    "group": GroupConfig.OPTIONS,
}

# What is different on purpose; docs/configuration.md says so.
OTHER_DEFAULTS = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "log.dir": "data",
    "controller.listener.names": "",
    "queued.max.request.bytes": "536870912",
}
NOT_CHANGED_WHILE_RUNNING = {
    "listeners": "listeners are not added while the broker runs",
    "listener.security.protocol.map": "listeners are not added while the broker runs",
    "cordoned.log.dirs": "no directory is cordoned",
    "metric.reporters": "Java classes are not loaded",
    "ssl.engine.factory.class": "Java classes are not loaded",
}
"""Options that clients may change in Kafka but not in Odradek, with the reason."""

CHECKED_AS_A_WHOLE = ("controller.quorum.voters", "controller.quorum.bootstrap.servers")
CHECKED_ELSEWHERE = ("errors.deadletterqueue.topic.name",)
"""Options with a rule that Kafka's definition of them doesn't have."""


class Known(NamedTuple):
    """An option of Kafka; all fields are texts."""

    kind: str
    name: str
    type: str
    default: str
    valid: str
    importance: str
    internal: str
    changes: str
    other_names: str


def known_options() -> list[Known]:
    lines = Path(__file__).with_name("kafka_options.tsv").read_text().splitlines()
    return [Known(*line.split("\t")) for line in lines if not line.startswith("#")]


def declared_options() -> list[Known]:
    return [kafkas for kafkas in known_options() if kafkas.name in OPTIONS[kafkas.kind]]


def name_of(kafkas: Known) -> str:
    return f"{kafkas.kind}-{kafkas.name}"


def valid(option: Option) -> str:
    """Returns the text of Kafka's ConfigDef.Validator for an option's rules."""
    rules = option.rules
    if "check" in rules:
        return rules["check"].valid
    if "one_of" in rules:
        return f"[{', '.join(rules['one_of'])}]"
    low, high = rules.get("at_least"), rules.get("at_most")
    return "" if low is None else f"[{low},...]" if high is None else f"[{low},...,{high}]"


@pytest.mark.parametrize("kafkas", declared_options(), ids=name_of)
def test_an_option_is_as_kafka_has_it(kafkas: Known) -> None:
    option = OPTIONS[kafkas.kind][kafkas.name]
    default = option.text(option.default)
    expected = OTHER_DEFAULTS.get(kafkas.name, None if kafkas.default == "<null>" else kafkas.default)
    assert (option.type.name, default) == (kafkas.type, expected)
    assert (option.importance, str(option.internal).lower()) == (kafkas.importance, kafkas.internal)
    if kafkas.changes != "-" and kafkas.name not in NOT_CHANGED_WHILE_RUNNING:
        assert option.update == kafkas.changes


@pytest.mark.parametrize("kafkas", declared_options(), ids=name_of)
def test_an_option_takes_what_kafka_takes(kafkas: Known) -> None:
    taken = "" if kafkas.name in CHECKED_AS_A_WHOLE else kafkas.valid
    own = "" if kafkas.name in CHECKED_ELSEWHERE else valid(OPTIONS[kafkas.kind][kafkas.name])
    assert own == taken


@pytest.mark.parametrize("kafkas", declared_options(), ids=name_of)
def test_an_option_has_the_other_names_that_it_has_in_kafka(kafkas: Known) -> None:
    option = OPTIONS[kafkas.kind][kafkas.name]
    names = option.synonyms if kafkas.kind != "broker" or synonym_names(kafkas.name) != (kafkas.name,) else ()
    assert ",".join(names) == kafkas.other_names


@pytest.mark.parametrize("kind", ["topic", "group"])
def test_topics_and_groups_have_every_option(kind: str) -> None:
    ours = {name for name in OPTIONS[kind] if not name.startswith(BEYOND)}
    assert ours == {kafkas.name for kafkas in known_options() if kafkas.kind == kind}


def test_every_broker_option_is_there_or_accepted_or_refused() -> None:
    names = {kafkas.name for kafkas in known_options() if kafkas.kind == "broker"}
    unknown = [name for name in names - BrokerConfig.OPTIONS.keys() - REFUSED.keys() if why_ignored(name) is None]
    assert not unknown
    assert all(name.startswith(BEYOND) for name in BrokerConfig.OPTIONS.keys() - names)


def test_clients_change_the_options_that_kafka_lets_them_change() -> None:
    theirs = {
        kafkas.name: kafkas.changes
        for kafkas in known_options()
        if kafkas.kind == "broker" and kafkas.changes != READ_ONLY and kafkas.name not in NOT_CHANGED_WHILE_RUNNING
    }
    ours = {
        name: option.update
        for name, option in OPTIONS["broker"].items()
        if option.update != READ_ONLY and not name.startswith(BEYOND)
    }
    assert ours == theirs


def test_an_option_without_effect_says_why() -> None:
    assert not [name for name in WITHOUT_EFFECT if (why_ignored(name) or why_refused(name)) is None]
    assert not WITHOUT_EFFECT.keys() & BrokerConfig.OPTIONS.keys()


def test_no_option_is_there_and_ignored() -> None:
    assert not [name for name in BrokerConfig.OPTIONS if why_ignored(name) is not None]


@pytest.mark.parametrize("kafkas", declared_options(), ids=name_of)
def test_an_option_says_what_it_is_for(kafkas: Known) -> None:
    doc = OPTIONS[kafkas.kind][kafkas.name].doc
    assert doc.endswith(".")
    assert "|" not in doc
