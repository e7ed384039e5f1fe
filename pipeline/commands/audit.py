"""odradek pipeline audit."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cli.exits import DIFFERS, DONE
from pipeline.audit import Audit, AuditConfig, MirrorOf, audit
from pipeline.commands.common import say, session_of, table_place
from pipeline.completeness import Line, by_partition
from pipeline.iceberg.audit import TableAudit, TableLine, audit_tables
from pipeline.settings import CLIENT, CONNECTOR, SPARK, parse_settings


def run(options: Namespace) -> int:
    """Runs the job. Returns the exit code."""
    settings = parse_settings(options.assignments, SPARK, CONNECTOR, CLIENT)
    config = AuditConfig(
        bootstrap=options.bootstrap,
        topics=tuple(options.topic),
        pattern=options.pattern,
        store=options.store,
        mirror=MirrorOf(options.mirror, options.mirror_prefix) if options.mirror else None,
        window=options.window,
        only_loaded=options.only_loaded,
        options=settings[CONNECTOR],
        properties=settings[CLIENT],
    )
    place = table_place(options)
    spark = session_of("audit", options.master, settings, place)
    if place is not None:
        found = audit_tables(spark, config, place, publish=options.publish)
        if options.json_file:
            lines = [line._asdict() for line in found.lines]
            Path(options.json_file).write_text(json.dumps({"clean": found.clean, "lines": lines}, indent=1))
        show_tables(found)
        return DONE if found.clean else DIFFERS
    result = audit(spark, config)
    if options.json_file:
        Path(options.json_file).write_text(as_json(result))
    show(result)
    return DONE if result.clean else DIFFERS


def show_tables(found: TableAudit) -> None:
    """Prints a table of the partitions, and a last line."""
    made = Table(title="by partition")
    always = TableLine._fields[: TableLine._fields.index("missing") + 1]
    shown = [name for name in TableLine._fields if name in always or any(getattr(line, name) for line in found.lines)]
    for name in shown:
        made.add_column({"later": "not yet", "empty": "no record"}.get(name, name))
    for line in found.lines:
        made.add_row(*(str(getattr(line, name)) for name in shown))
    Console().print(made)
    say("complete" if found.clean else "NOT complete")


def show(result: Audit) -> None:
    """Prints a table of the partitions, a table of the windows that differ, and a last line."""
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
