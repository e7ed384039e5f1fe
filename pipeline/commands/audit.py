"""odradek pipeline audit."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pipeline.audit import Audit, AuditConfig, MirrorOf, audit
from pipeline.commands.common import add_cluster, add_connector, add_spark, add_topics, pairs, say, spark_of
from pipeline.completeness import Line, by_partition

EXAMPLE = "odradek pipeline audit --bootstrap 127.0.0.1:9092 --topics clicks --store ./store"
DIFFERS = 3


def arguments(parser: argparse.ArgumentParser) -> None:
    add_cluster(parser)
    add_topics(parser)
    parser.add_argument("--store", metavar="DIR", help="what was loaded")
    parser.add_argument("--mirror", metavar="HOST:PORT", help="the cluster that mirrors this one")
    parser.add_argument("--mirror-prefix", default="", metavar="TEXT", help="what names of mirrored topics begin with")
    parser.add_argument("--window", default="1 hour", help="length of the windows of record timestamps (1 hour)")
    parser.add_argument("--only-loaded", action="store_true", help="do not miss what was not loaded yet")
    parser.add_argument("--json", metavar="FILE", help="write all lines there, too")
    add_connector(parser)
    add_spark(parser)


def run(options: argparse.Namespace) -> int:
    config = AuditConfig(
        bootstrap=options.bootstrap,
        topics=options.topics,
        pattern=options.pattern,
        store=options.store,
        mirror=MirrorOf(options.mirror, options.mirror_prefix) if options.mirror else None,
        window=options.window,
        only_loaded=options.only_loaded,
        options=pairs(options.options),
        properties=pairs(options.properties),
    )
    result = audit(spark_of("audit", options), config)
    if options.json:
        Path(options.json).write_text(as_json(result))
    show(result)
    return 0 if result.clean else DIFFERS


def show(result: Audit) -> None:
    """A table of the partitions, one of the windows that differ, and a last line."""
    console = Console()
    console.print(table("by partition", by_partition(list(result.lines)), windows=False))
    if differing := [line for line in result.lines if not line.clean]:
        console.print(table("windows that differ", differing, windows=True))
    if result.expired:
        say(f"{result.expired} records of the store are no longer in the topics")
    say("complete" if result.clean else "NOT complete")


def table(title: str, lines: Sequence[Line], *, windows: bool) -> Table:
    made = Table(title=title)
    for name in ("topic", "partition", *(["window"] if windows else []), "produced"):
        made.add_column(name, justify="right" if name in ("partition", "produced") else "left")
    for stage in lines[0].stages if lines else ():
        made.add_column(stage.stage, justify="right")
        made.add_column("")
    for line in lines:
        stages = [word for stage in line.stages for word in (f"{stage.records}", stage.text)]
        window = [at(line.cell.start_ms)] if windows else []
        made.add_row(line.cell.topic, str(line.cell.partition), *window, str(line.produced), *stages)
    return made


def at(start_ms: int) -> str:
    return datetime.fromtimestamp(start_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def as_json(result: Audit) -> str:
    lines = [
        {**line.cell._asdict(), "produced": line.produced, "stages": [stage._asdict() for stage in line.stages]}
        for line in result.lines
    ]
    return json.dumps({"clean": result.clean, "expired": result.expired, "lines": lines}, indent=1)
