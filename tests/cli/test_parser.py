"""Tests old spellings, unknown words, and errors in options."""

from __future__ import annotations

import shlex

import pytest

from cli.main import main
from tests.cli.parsers import declared, parsed

LOAD = "pipeline load --bootstrap h:1 --out s"
REPORT = "pipeline report --store s --out r"
MIRROR = "pipeline mirror --source h:1 --target h:2 --topic t"
REPLAY = "pipeline replay --bootstrap h:1 --store s --topic t"
AUDIT = "pipeline audit --bootstrap h:1 --topic t"
MIGRATE = "consumers migrate g --zookeeper z:1"

OLD = [
    (f"{LOAD} --topics a,b", f"{LOAD} --topic a --topic b", ["--topics is now --topic"]),
    (f"{LOAD} --topics=a", f"{LOAD} --topic a", ["--topics is now --topic"]),
    (f"{REPORT} --topics t", f"{REPORT} --topic t", ["--topics is now --topic"]),
    (f"{LOAD} --topic t --conf spark.a=1", f"{LOAD} --topic t --set spark.a=1", ["--conf is now --set"]),
    (f"{LOAD} --topic t --option kafka.a=1", f"{LOAD} --topic t -X kafka.a=1", ["--option is now --set"]),
    (
        f"{LOAD} --topic t --property a=1 --property b=2",
        f"{LOAD} --topic t --set a=1 --set b=2",
        ["--property is now --set"],
    ),
    (f"{MIRROR} --source-property a=1", f"{MIRROR} --set source.a=1", ["--source-property is now --set"]),
    (f"{MIRROR} --target-property a=1", f"{MIRROR} --set target.a=1", ["--target-property is now --set"]),
    (f"{LOAD} --topic t --starting earliest", f"{LOAD} --topic t --from earliest", ["--starting is now --from"]),
    (f"{LOAD} --topic t --ending latest", f"{LOAD} --topic t --until latest", ["--ending is now --until"]),
    (f"{LOAD} --topic t --ending '{{}}'", f"{LOAD} --topic t --until '{{}}'", ["--ending is now --until"]),
    (
        f"{LOAD} --topic t --from-time 2026-01-31 --until-time 2026-02-01",
        f"{LOAD} --topic t --from @2026-01-31 --until @2026-02-01",
        ["--from-time is now --from", "--until-time is now --until"],
    ),
    (f"{REPLAY} --append", f"{REPLAY} --accept-records", ["--append is now --accept-records"]),
    (f"{REPLAY} --to u", f"{REPLAY} --to-topic u", ["--to is now --to-topic"]),
    (f"{AUDIT} --json f", f"{AUDIT} --json-file f", ["--json is now --json-file"]),
    (f"{AUDIT} --window '1 hour'", f"{AUDIT} --window 1h", ["'1 hour' is now a duration such as 10m"]),
    (f"{MIRROR} --follow 1.5", f"{MIRROR} --follow 1500ms", ["1.5 is now 1.5s"]),
    (f"{MIGRATE} --execute", f"{MIGRATE} --yes", ["--execute is now --yes"]),
    (f"{MIGRATE} --to zookeeper", f"{MIGRATE} --into zookeeper", ["--to is now --into"]),
    ("topic grow t --to 4", "topic grow t --partitions 4", ["--to is now --partitions"]),
    ("topic reassign t --to 1,2", "topic reassign t --to-brokers 1,2", ["--to is now --to-brokers"]),
]


@pytest.mark.parametrize(("old", "new", "warnings"), OLD)
def test_an_old_spelling_works_with_a_warning(
    old: str, new: str, warnings: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert parsed(shlex.split(old)) == parsed(shlex.split(new))
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(";")[0] for line in lines] == [f"odradek: {warning}" for warning in warnings]


def test_help_does_not_show_old_spellings() -> None:
    for path, parser, _ in declared():
        words = parser.format_help().replace(",", " ").replace("]", " ").split()
        assert not set(parser._renamed).intersection(words), path


def test_a_new_spelling_has_no_warning(capsys: pytest.CaptureFixture[str]) -> None:
    parsed(shlex.split(f"{LOAD} --topic t -X spark.a=1 --from start"))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("topic create t --partitons 3", "unknown option --partitons; did you mean --partitions?"),
        ("topic list --bootstrap-servers h:1", "unknown option --bootstrap-servers; did you mean --bootstrap?"),
        ("run --datadir d", "unknown option --datadir; did you mean --data?"),
        ("pipeline load --topcs t", "unknown option --topcs; did you mean --topic?"),
        ("top x", "unexpected argument x"),
        ("topic crate t", "unknown command crate; did you mean create?"),
        ("topci list", "unknown command topci; did you mean topic?"),
        ("pipeline lod", "unknown command pipeline lod; did you mean load?"),
        ("topic list -o xml", "-o/--output: xml is unknown; expected table, json"),
        ("topic create t -p many", "-p/--partitions: 'many' is not a whole number"),
        ("doctor --free much", "--free: 'much' is not a number"),
        ("txn hanging --older-than 5", "--older-than: '5' is not a duration such as 500ms, 90s, 15m, 1.5h, 7d"),
        (f"{AUDIT} --window wide", "--window: 'wide' is not a duration such as 500ms, 90s, 15m, 1.5h, 7d"),
        ("topic create", "the following arguments are required: TOPIC"),
        ("", "COMMAND is missing"),
        (
            "pipeline",
            "COMMAND is missing after pipeline: generate, load, stream, report, mirror, replay, audit, maintain",
        ),
    ],
)
def test_wrong_words_end_with_2_and_a_line(line: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status: object = main(shlex.split(line))
    except SystemExit as error:
        status = error.code
    err = capsys.readouterr().err
    assert status == 2
    assert err.startswith(f"odradek: {problem}")
    assert err.count("\n") == 1
