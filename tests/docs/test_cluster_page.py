"""Tests that the options and commands in docs/cluster.md exist. `make test-cluster` runs them."""

from __future__ import annotations

import re

import pytest

from broker.config import BrokerConfig
from broker.config.sources import from_file, load
from tests.cli.parsers import parsed
from tests.docs.cluster_page import PAGE, commands, file_of, section


@pytest.mark.parametrize(("title", "name", "roles"), [
    ("Three machines, each broker and controller", "node.properties", ("broker", "controller")),
    ("The controllers", "controller.properties", ("controller",)),
    ("The brokers", "broker.properties", ("broker",)),
])  # fmt: skip
def test_a_file_of_options_is_valid(title: str, name: str, roles: tuple[str, ...]) -> None:
    loaded = load(from_file(name, file_of(section(title), name)))
    assert loaded.config.process_roles == roles
    assert not loaded.unused


def test_the_commands_have_the_options_that_the_page_gives_them() -> None:
    listed = [command.words for command in commands(PAGE.read_text()) if command.words[0] == "odradek"]
    assert {words[1] for words in listed} == {"random-uuid", "format", "run", "cluster"}
    for words in listed:
        parsed(words[1:])


def test_what_the_log_says_is_in_the_source() -> None:
    events = set(re.findall(r"^    ([a-z][a-z ;:,-]+?)  +\w+=", PAGE.read_text(), re.MULTILINE))
    rows = [row.split("|") for row in section("When something fails").splitlines() if row.startswith("| ")]
    events |= {text.partition("  ")[0] for row in rows for text in re.findall(r"`([^`]+)`", row[3])}
    files = [path for room in ("broker", "coordinator", "programs") for path in (PAGE.parents[1] / room).rglob("*.py")]
    source = "\n".join(path.read_text() for path in files)
    assert len(events) > 8
    assert not {event for event in events - BrokerConfig.OPTIONS.keys() if f'"{event}"' not in source}


def test_a_unit_runs_a_command_that_there_is() -> None:
    units = sorted((PAGE.parents[1] / "systemd").glob("*.service"))
    assert [unit.name for unit in units] == [
        "odradek-broker@.service", "odradek-cluster.service", "odradek-controller.service", "odradek-node.service",
    ]  # fmt: skip
    for unit in units:
        (started,) = re.findall(r"^ExecStart=/usr/bin/env odradek (\w+) (.+)$", unit.read_text(), re.MULTILINE)
        if started[0] == "cluster":
            parsed(["cluster", *started[1].split()])
        else:
            assert started[0] == "run"
            assert re.fullmatch(r"/etc/odradek/(controller|broker-%i|node)\.properties", started[1])
        assert unit.name in PAGE.read_text()
