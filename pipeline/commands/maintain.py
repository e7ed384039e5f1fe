"""odradek pipeline maintain."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from pipeline.commands.common import session_of, table_place
from pipeline.errors import PipelineError
from pipeline.iceberg.maintain import Figures, MaintainConfig, MaintainOutcome, maintain
from pipeline.settings import SPARK, parse_settings


def run(options: Namespace) -> int:
    """Runs the job. Returns the exit code."""
    settings = parse_settings(options.assignments, SPARK)
    place = table_place(options)
    if place is None:
        raise PipelineError("maintain needs --catalog, because it is for Iceberg tables")
    config = MaintainConfig(
        topics=tuple(options.topic),
        now_ms=int(time.time() * 1000),
        keep_snapshots_ms=options.keep_snapshots,
        keep_orphans_ms=options.keep_orphans,
        file_bytes=options.file_mib * 1024 * 1024,
        dry_run=options.dry_run,
    )
    show(maintain(session_of("maintain", options.master, settings, place), config, place), dry_run=config.dry_run)
    return 0


def show(done: Sequence[MaintainOutcome], *, dry_run: bool) -> None:
    """Prints each table's figures before and after."""
    made = Table(title="estimated result" if dry_run else "result")
    for name in ("table", *(name.replace("_", " ") for name in Figures._fields)):
        made.add_column(name)
    for outcome in done:
        pairs = zip(outcome.before, outcome.after, strict=True)
        made.add_row(
            outcome.table,
            *(f"{before:,}" if before == after else f"{before:,} → {after:,}" for before, after in pairs),
        )
    Console().print(made)
