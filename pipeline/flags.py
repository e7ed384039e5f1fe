"""The options of each job of `odradek pipeline`. This module doesn't need Spark."""

from __future__ import annotations

import argparse
import re
from functools import partial
from importlib import import_module
from typing import Final, NamedTuple

from cli.actions import Actions, Options
from cli.durations import UNIT_MS
from cli.flags import (
    BOOTSTRAP,
    BRANCH,
    CATALOG,
    DRY_RUN,
    FROM,
    OUT,
    PARTITIONS,
    PATTERN,
    SET,
    STORE,
    TABLE,
    TO_TOPIC,
    TOPIC,
    UNTIL,
    WAREHOUSE,
    WINDOW,
    Flag,
    duration,
    integer,
    number,
)
from cli.parser import Parser, warn_of_old
from pipeline.formats import Format

SETTINGS: Final = """\
--set NAME=VALUE sets, by the name: spark.… a property of Spark; kafka.…, and names with capital letters such as
minPartitions, an option of Spark's Kafka connector; any other name a property of the client (librdkafka)."""
MIRROR_SETTINGS: Final = SETTINGS.replace("any other name", "source.… and target.…")
POSITIONS: Final = """\
A position is start, end, @TIME (ISO 8601 in UTC, milliseconds, or @-15m), or JSON of offsets such as
'{"clicks": {"0": 23}}'. Without --from a run continues after the last loaded record."""

OLD_SETTINGS: Final = ("--property", "--option", "--conf")

SPARK_UNITS: Final = {"d": "day", "h": "hour", "m": "minute", "s": "second", "ms": "millisecond"}
"""Spark's names of the units of durations, the largest unit first."""


class JobOptions(NamedTuple):
    """The options of a job, an example of its command, further help, and its own exit codes."""

    options: Options
    example: str
    more: str = SETTINGS
    exit_codes: str = ""


def declare(actions: Actions) -> None:
    name = actions.name.split()[1]
    job = JOBS[name]
    actions.only(
        partial(run_job, name),
        options=job.options,
        examples=[f"odradek {actions.name} {job.example}"],
        more=job.more,
        exit_codes=job.exit_codes,
    )


def run_job(name: str, options: argparse.Namespace) -> int:
    """Runs a job, whose module needs Spark. Returns the exit code."""
    status: int = import_module(f"pipeline.commands.{name}").run(options)
    return status


def interval(text: str) -> str:
    """Returns a duration as Spark writes it, such as "10 minutes". Raises ArgumentTypeError."""
    if re.fullmatch(r"[0-9]+ [a-z]+", text):  # as Spark writes it
        warn_of_old(f"{text!r}", "a duration such as 10m")
        return text
    length_ms = duration(text)
    unit = next(unit for unit in SPARK_UNITS if length_ms % UNIT_MS[unit] == 0)
    count = length_ms // UNIT_MS[unit]
    return f"{count} {SPARK_UNITS[unit]}{'' if count == 1 else 's'}"


def seconds(text: str) -> float:
    """Returns the seconds of a duration. Raises ArgumentTypeError."""
    if re.fullmatch(r"[0-9.]+", text):
        warn_of_old(text, f"{text}s")
        return number(text)
    return duration(text) / 1000


INTERVALS: Final = WINDOW._replace(parse=interval)


def split(text: str) -> tuple[str, ...]:
    """Returns the words between commas."""
    return tuple(word for word in text.split(",") if word)


def _add_settings(parser: Parser, help: str) -> None:
    SET.add(parser, repeatable=True, help=help)
    for old in OLD_SETTINGS:
        parser.rename(old, "--set")


def _add_spark(parser: Parser) -> None:
    _add_settings(parser, "a setting of the client, of Spark or of its connector, as described above")
    Flag(("--master",), "Spark's master: local[N], spark://…, yarn, k8s://…; default: local[*]", "URL").add(parser)


def _add_topics(parser: Parser) -> None:
    chosen = parser.add_mutually_exclusive_group(required=True)
    TOPIC.add(chosen, repeatable=True)
    PATTERN.add(chosen)
    parser.rename("--topics", "--topic", split)


def _add_only_topics(parser: Parser) -> None:
    TOPIC.add(parser, required=True, repeatable=True)
    parser.rename("--topics", "--topic", split)


def _rename_times(parser: Parser) -> None:
    for old, new in (("--from-time", "--from"), ("--until-time", "--until")):
        parser.rename(old, new, lambda time: (f"@{time}",))


def _add_decoding(parser: Parser) -> None:
    formats = [format.value for format in Format]
    Flag(("--values",), "decode values into the column `data`", choices=formats).add(parser, default="bytes")
    schema = "for json a DDL or Spark's JSON of a struct, for Avro an .avsc file; tables infer it from JSON"
    Flag(("--schema",), schema, "FILE").add(parser)
    Flag(("--schema-registry",), "schemas by the ids in Confluent's frames, for tables", "URL").add(parser)
    Flag(("--schema-id",), "the only id that Confluent's frames may have", "ID", integer).add(parser)


def _add_accepted(parser: Parser) -> None:
    Flag(("--accept-lost",), "continue if retention deleted records that were not loaded yet").add(parser)
    Flag(("--accept-new-partitions",), "continue if a topic has more partitions than before").add(parser)
    Flag(("--accept-recreated",), "forget the loaded records of a topic that was created again").add(parser)


def _add_table(parser: Parser) -> None:
    WAREHOUSE.add(parser)
    TABLE.add(parser)
    BRANCH.add(parser)


def _add_place(parser: Parser) -> None:
    """Adds the store to write to: a directory of Parquet files, or a catalog of Iceberg tables."""
    place = parser.add_mutually_exclusive_group(required=True)
    OUT.add(place, help="directory of a store of Parquet files")
    CATALOG.add(place)
    _add_table(parser)
    transforms = "Iceberg's transforms of a new table's columns, such as 'hours(timestamp), bucket(8, key)'"
    Flag(("--partition-by",), transforms, "TRANSFORMS").add(parser)
    Flag(("--upsert",), "a new table has the last record of each key; tombstones delete").add(parser)


def _generate(parser: Parser) -> None:
    BOOTSTRAP.add(parser, required=True)
    TOPIC.add(parser, required=True, help="topic to write to, created if missing")
    PARTITIONS.add(parser, default=4)
    _add_settings(parser, "a property of the client (librdkafka)")
    Flag(("--records",), "number of records, including repeated records", "N", integer).add(parser, required=True)
    Flag(("--seed",), "the same seed and start produce the same records", "N", integer).add(parser, default=0)
    Flag(("--start",), "time of the first event; default: the last event is now", "TIME").add(parser)
    Flag(("--per-second",), "events per simulated second", "N", number).add(parser, default=20.0)
    Flag(("--users",), "number of users", "N", integer).add(parser, default=20_000)
    Flag(("--pages",), "number of pages", "N", integer).add(parser, default=800)
    Flag(("--skew",), "Zipf's exponent of pages", "EXPONENT", number).add(parser, default=1.1)
    Flag(("--user-skew",), "Zipf's exponent of users", "EXPONENT", number).add(parser, default=0.5)
    Flag(("--late",), "share of the events that are sent minutes late", "SHARE", number).add(parser, default=0.02)
    Flag(("--doubled",), "share of the events that are sent twice", "SHARE", number).add(parser, default=0.005)
    Flag(("--rate",), "records per second, 0 for full speed", "N", number).add(parser, default=0.0)


def _load(parser: Parser) -> None:
    BOOTSTRAP.add(parser, required=True)
    _add_topics(parser)
    _add_place(parser)
    FROM.add(parser, help="first position to read; default: after the last loaded record")
    UNTIL.add(parser, help="stop before this position; default: end")
    parser.rename("--starting", "--from")
    parser.rename("--ending", "--until")
    _rename_times(parser)
    _add_decoding(parser)
    _add_accepted(parser)
    Flag(("--dead-letters",), "decode the table's dead letters again, not the topic").add(parser)
    Flag(("--metrics-file",), "write the run's figures, as Prometheus's text", "FILE").add(parser)
    Flag(("--min-partitions",), "split ranges into at least N tasks (minPartitions)", "N").add(parser)
    Flag(("--max-records-per-partition",), "split ranges, against skew (maxRecordsPerPartition)", "N").add(parser)
    _add_spark(parser)


def _stream(parser: Parser) -> None:
    BOOTSTRAP.add(parser, required=True)
    _add_only_topics(parser)
    _add_place(parser)
    triggers = "now: load the existing records; 10s: load every ten seconds; continuous:1s"
    Flag(("--trigger",), triggers, "TRIGGER").add(parser, default="now")
    Flag(("--max-offsets",), "offsets per batch", "N", integer).add(parser, default=200_000)
    Flag(("--checkpoint",), "Spark's checkpoint; default with --out: OUT/_checkpoint", "DIR").add(parser)
    Flag(("--progress",), "append a line of JSON for each batch", "FILE").add(parser)
    Flag(("--counts",), "write events per type and window, too, as Parquet", "DIR").add(parser)
    Flag(("--watermark",), "how late a counted event may be", "DURATION", interval).add(parser, default="10m")
    INTERVALS.add(parser, default="10m")
    TO_TOPIC.add(parser, help="write to this topic instead of the store, at least once")
    _add_decoding(parser)
    _add_accepted(parser)
    _add_spark(parser)


def _report(parser: Parser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    STORE.add(source)
    CATALOG.add(source)
    BOOTSTRAP.add(source)
    _add_table(parser)
    _add_only_topics(parser)
    OUT.add(parser, required=True, help="directory of report.html and the tables")
    INTERVALS.add(parser, default="10m")
    Flag(("--gap",), "the pause that ends a session", "DURATION", interval).add(parser, default="30m")
    types = "page_view,search,sign_up"
    Flag(("--funnel",), "event types in order", "TYPE,TYPE…", split).add(parser, default=types)
    Flag(("--top",), "number of pages", "N", integer).add(parser, default=15)
    _add_spark(parser)


def _mirror(parser: Parser) -> None:
    Flag(("--source",), "brokers to read from", "HOST:PORT").add(parser, required=True)
    Flag(("--target",), "brokers to write to", "HOST:PORT").add(parser, required=True)
    _add_topics(parser)
    Flag(("--prefix",), "prefix of the topics' names in the target", "TEXT").add(parser, default="")
    Flag(("--follow",), "repeat the mirror, with this pause between rounds", "DURATION", seconds).add(parser)
    Flag(("--max-records",), "records per round", "N", integer).add(parser, default=1_000_000)
    _add_spark(parser)
    parser.rename("--source-property", "--set", lambda pair: (f"source.{pair}",))
    parser.rename("--target-property", "--set", lambda pair: (f"target.{pair}",))


def _replay(parser: Parser) -> None:
    BOOTSTRAP.add(parser, required=True)
    source = parser.add_mutually_exclusive_group(required=True)
    STORE.add(source)
    CATALOG.add(source)
    _add_table(parser)
    _add_only_topics(parser)
    TO_TOPIC.add(parser, help="write to this topic; default: the topic's own name")
    Flag(("--pace",), "multiple of the recorded speed; default: full speed", "FACTOR", number).add(parser)
    Flag(("--accept-records",), "continue if the topic to write to has records").add(parser)
    FROM.add(parser, help="@TIME: records with this timestamp or a later one")
    UNTIL.add(parser, help="@TIME: records with an earlier timestamp")
    parser.rename("--append", "--accept-records")
    parser.rename("--to", "--to-topic")
    _rename_times(parser)
    _add_spark(parser)


def _audit(parser: Parser) -> None:
    BOOTSTRAP.add(parser, required=True)
    _add_topics(parser)
    places = parser.add_mutually_exclusive_group()
    STORE.add(places)
    CATALOG.add(places)
    _add_table(parser)
    Flag(("--mirror",), "brokers of the cluster that mirrors this cluster", "HOST:PORT").add(parser)
    Flag(("--mirror-prefix",), "prefix of the topics' names in the mirror", "TEXT").add(parser, default="")
    INTERVALS.add(parser, default="1h", help="length of the windows of record timestamps")
    Flag(("--only-loaded",), "don't report records that were not loaded yet as missing").add(parser)
    Flag(("--publish",), "make the audited --branch the table's main if the audit finds no difference").add(parser)
    Flag(("--json-file",), "write all lines to this file, too, as JSON", "FILE").add(parser)
    parser.rename("--json", "--json-file")
    _add_spark(parser)


def _maintain(parser: Parser) -> None:
    CATALOG.add(parser, required=True)
    WAREHOUSE.add(parser)
    TABLE.add(parser)
    _add_only_topics(parser)
    Flag(("--keep-snapshots",), "age at which snapshots expire", "DURATION", duration).add(parser, default="5d")
    orphans = "age at which files that no snapshot has are removed, at least a day"
    Flag(("--keep-orphans",), orphans, "DURATION", duration).add(parser, default="3d")
    Flag(("--file-mib",), "size of merged files, in MiB", "N", integer).add(parser, default=128)
    DRY_RUN.add(parser, help="only print what would change")
    _add_spark(parser)


JOBS: Final = {
    "generate": JobOptions(_generate, "--bootstrap 127.0.0.1:9092 --topic clicks --records 100000 --seed 7", ""),
    "load": JobOptions(_load, "--bootstrap 127.0.0.1:9092 --topic clicks --out ./store", f"{POSITIONS}\n\n{SETTINGS}"),
    "stream": JobOptions(_stream, "--bootstrap 127.0.0.1:9092 --topic clicks --out ./store --trigger now"),
    "report": JobOptions(_report, "--store ./store --topic clicks --out ./report"),
    "mirror": JobOptions(_mirror, "--source 127.0.0.1:9092 --target 127.0.0.1:9192 --topic clicks", MIRROR_SETTINGS),
    "replay": JobOptions(
        _replay, "--bootstrap 127.0.0.1:9092 --store ./store --topic clicks --to-topic clicks-again --pace 60"
    ),
    "audit": JobOptions(
        _audit,
        "--bootstrap 127.0.0.1:9092 --topic clicks --store ./store",
        exit_codes="0 complete, 1 failed, 2 wrong arguments, 3 differences",
    ),
    "maintain": JobOptions(
        _maintain, "--topic clicks --catalog jdbc:sqlite:./catalog.db --warehouse ./tables --dry-run"
    ),
}
