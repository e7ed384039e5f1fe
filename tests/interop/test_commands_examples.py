"""Runs the examples of every command's help, in order, with one broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.actions import declare_command
from cli.table import CLUSTER_COMMANDS
from tests.interop.conftest import Start
from tests.interop.shell import Shell, odradek

pytestmark = pytest.mark.odradek_only

BEFORE = {
    "consume": [
        "odradek topic create payments -p 3",
        "printf '1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n10\\n' | odradek produce orders",
    ],
    "group reset": ["odradek group reset shipping --to start --topic orders --yes"],
    "token renew": ["echo c2VjcmV0 > token"],
    "share list": [
        "odradek topic create jobs -p 1",
        "odradek config set group workers share.auto.offset.reset=earliest",
        "printf '1\\n2\\n3\\n4\\n5\\n' | odradek produce jobs",
        "odradek share consume workers jobs -n 1",
    ],
    "share dead-letters": [
        "odradek topic create dlq.jobs -p 1 -c errors.deadletterqueue.group.enable=true",
        "odradek config set group workers errors.deadletterqueue.topic.name=dlq.jobs",
        "odradek share consume workers jobs -n 2 --reject",
    ],
}
"""Command lines that create the things in a command's examples, if earlier examples haven't created them."""

REFUSED = {
    "odradek txn abort orders:0 --start-offset 42 --yes",
    "odradek cluster decommission 4",
    "odradek cluster decommission 4 --yes --wait 2h",
    "odradek cluster controller add 103",
    "odradek cluster controller add 103 --address controller-3.example:9093 --yes",
    "odradek cluster controller remove 101",
    "odradek cluster controller remove 101 --yes",
    "odradek cluster controller unregister 101 --yes",
    "odradek token create",
    "odradek token create --lifetime 1d --renewer User:spark",
    "odradek token list",
    "odradek token list --owner User:ana",
    "odradek token renew --for 12h --hmac-file token",
    "odradek token expire --hmac-file token --yes",
}
"""Examples about something that this broker doesn't have, such as authenticated clients."""

EITHER_WAY = ("odradek doctor",)
"""Commands whose exit code depends on the machine."""

ELSEWHERE = {"consumers"}
"""Commands that need ZooKeeper; `make test-zookeeper` runs them."""


def ordered_examples() -> list[tuple[str, str]]:
    """Returns all examples, in the order of the table, each with its command."""
    return [
        (action.path, example)
        for name, command in CLUSTER_COMMANDS.items()
        if name not in ELSEWHERE
        for action in declare_command(name, command).declared
        for example in action.examples
    ]


def test_every_example_of_every_command_runs(
    start_odradek: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = start_odradek(
        {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "group.initial.rebalance.delay.ms": "0",
            "group.share.heartbeat.interval.ms": "200",
            "group.share.min.heartbeat.interval.ms": "200",
            "group.share.assignment.interval.ms": "0",
            "group.share.min.assignment.interval.ms": "0",
        }
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("# Read me\n")
    shell = Shell(tmp_path, {"odradek": odradek(broker.bootstrap)})
    prepared: set[str] = set()
    for path, example in ordered_examples():
        for line in BEFORE.get(path, []) if path not in prepared else []:
            assert shell.run(line).status == 0, line
        prepared.add(path)
        ended = shell.run(example)
        expected = {0, 1} if example.startswith(EITHER_WAY) else {1} if example in REFUSED else {0}
        assert ended.status in expected, (example, ended)
    assert prepared.issuperset(BEFORE)
