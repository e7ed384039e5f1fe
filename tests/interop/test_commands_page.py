"""Runs the table of docs/commands.md in order: command lines of Apache's tools, of kcat and of ours that do the
same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.commands_page import counterparts
from tests.interop import jvm
from tests.interop.brokers import Odradek
from tests.interop.processes import run as run_program
from tests.interop.shell import Ended, Program, Shell, odradek

pytestmark = pytest.mark.odradek_only

PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "group.initial.rebalance.delay.ms": "0",
    "group.share.heartbeat.interval.ms": "200",
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.assignment.interval.ms": "0",
}
TRIM = {"version": 1, "partitions": [{"topic": "orders", "partition": index, "offset": -1} for index in range(4)]}
REASSIGN = {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1]}]}

SNAPSHOT = (
    "odradek topic list",
    "odradek group list",
    "odradek share list",
    "odradek user list",
    "odradek quota list",
    "odradek acl list",
)
"""Commands whose outputs show the effect of a line."""

THROWN_AWAY = "console-consumer-"
"""Groups that Apache's console consumer creates for itself."""

EITHER_WAY = {"odradek doctor"}


class PageCluster:
    """A broker, and a folder for files."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "trim.json").write_text(json.dumps(TRIM))
        (folder / "reassign.json").write_text(json.dumps(REASSIGN))
        self.folder = folder
        self.broker = Odradek(folder / "data", PROPERTIES)
        self.broker.start()
        self.shell = Shell(folder, {"odradek": odradek(self.broker.bootstrap)})

    def snapshot(self) -> dict[str, object]:
        """Returns the state of the cluster, as our commands show it."""
        state: dict[str, object] = {line: self.rows(line) for line in SNAPSHOT}
        for row in self.rows("odradek topic list"):
            (topic,) = self.rows(f"odradek topic describe {row['topic']}")
            state[f"topic {row['topic']}"] = (topic["configs"], topic["partitions"])
            line = f"odradek consume {row['topic']} -e"
            state[line] = sorted((one["partition"], one["key"], one["payload"]) for one in self.rows(line))
        for row in self.rows("odradek group list"):
            (group,) = self.rows(f"odradek group describe {row['group']}")
            state[f"group {row['group']}"] = (group["type"], offsets(group["partitions"]))
        return state

    def rows(self, line: str) -> list[dict[str, object]]:
        ended = self.shell.run(line)
        assert ended.status == 0, (line, ended)
        listed = [json.loads(text) for text in ended.out.decode().splitlines()]
        return [row for row in listed if not str(row.get("group")).startswith(THROWN_AWAY)]


def offsets(partitions: object) -> list[tuple[object, ...]]:
    """Returns a group's partitions from which records were read: Java's consumers commit 0 for the others as well."""
    assert isinstance(partitions, list)
    listed = [(row["topic"], row["partition"], row.get("committed", row.get("start"))) for row in partitions]
    return [one for one in listed if one[2]]


@pytest.fixture
def worlds(tmp_path: Path) -> Iterator[list[PageCluster]]:
    made = [PageCluster(tmp_path / name) for name in ("ours", "theirs", "others")]
    yield made
    for world in made:
        world.broker.stop()
        world.broker.forget()


def test_our_lines_do_what_they_are_there_for(tmp_path: Path) -> None:
    world = PageCluster(tmp_path / "ours")
    for row in counterparts():
        ended = world.shell.run(row.odradek)
        assert ended.status == 0 or row.odradek in EITHER_WAY, (row.odradek, ended)
    world.broker.stop()
    world.broker.forget()


@pytest.mark.commands
def test_each_pair_leaves_the_same(worlds: list[PageCluster]) -> None:
    ours, theirs, others = worlds
    theirs.shell = Shell(theirs.folder, {"odradek": odradek(theirs.broker.bootstrap), **apache_tools(theirs)})
    others.shell = Shell(others.folder, {"odradek": odradek(others.broker.bootstrap), "kcat": kcat(others)})
    for row in counterparts():
        ended = theirs.shell.run(row.apache)
        assert ended.status == 0, (row.apache, ended)
        ended = ours.shell.run(row.odradek)
        assert ended.status == 0 or row.odradek in EITHER_WAY, (row.odradek, ended)
        assert ours.snapshot() == theirs.snapshot(), row
        lines = [line for line in row.others if "kcat " in line] or [row.odradek]
        for line in lines:
            ended = others.shell.run(line)
            assert ended.status == 0 or line in EITHER_WAY, (line, ended)


def apache_tools(world: PageCluster) -> dict[str, Program]:
    """Returns Apache's tools by the names of their scripts."""

    def tool(name: str) -> Program:
        def run(words: list[str], stdin: bytes) -> Ended:
            words = [str(world.folder / word) if word.endswith(".json") else word for word in words]
            where = ["--bootstrap-server", world.broker.bootstrap]
            done = run_program(jvm.command_of(name, *where, *words), stdin=stdin, timeout_s=120, check=False)
            return Ended(done.returncode, done.stdout, done.stderr.decode())

        return run

    return {name: tool(name) for name in jvm.TOOLS}


def kcat(world: PageCluster) -> Program:
    def run(words: list[str], stdin: bytes) -> Ended:
        done = run_program(["kcat", "-b", world.broker.bootstrap, *words], stdin=stdin, timeout_s=60, check=False)
        return Ended(done.returncode, done.stdout, done.stderr.decode())

    return run
