"""odradek pipeline stream."""

from __future__ import annotations

from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table

from pipeline.commands.common import say, session_of, table_place
from pipeline.commands.load import accepted
from pipeline.decode import Decoding
from pipeline.progress import BatchProgress, parse_trigger
from pipeline.settings import CLIENT, CONNECTOR, SPARK, parse_settings
from pipeline.stream import StreamConfig, stream

LAST_BATCHES = 12


def run(options: Namespace) -> int:
    """Runs the job. Returns the exit code."""
    settings = parse_settings(options.assignments, SPARK, CONNECTOR, CLIENT)
    place = table_place(options)
    config = StreamConfig(
        bootstrap=options.bootstrap,
        out=options.out,
        tables=place,
        topics=tuple(options.topic),
        trigger=parse_trigger(options.trigger),
        max_offsets=options.max_offsets,
        checkpoint=options.checkpoint,
        accepted=accepted(options),
        decoding=Decoding.of(options.values, options.schema, options.schema_id, options.schema_registry),
        counts=options.counts,
        watermark=options.watermark,
        window=options.window,
        to_topic=options.to_topic,
        options=settings[CONNECTOR],
        properties=settings[CLIENT],
    )
    with ExitStack() as stack:
        lines = stack.enter_context(Path(options.progress).open("a")) if options.progress else None
        spark = session_of("stream", options.master, settings, place)
        live = stack.enter_context(Live(table([]), console=Console(), auto_refresh=False))
        total = stream(spark, config, Shown(live, lines))
    say(f"{options.out or options.catalog}: {total} records")
    return 0


class Shown:
    """Shows batches when they are complete: the last batches in the terminal, and each batch as a line of `lines`."""

    def __init__(self, live: Live, lines: TextIO | None) -> None:
        self._live, self._lines = live, lines
        self._last: list[BatchProgress] = []

    def __call__(self, progress: BatchProgress) -> None:
        self._last = [*self._last, progress][-LAST_BATCHES:]
        self._live.update(table(self._last), refresh=True)
        if self._lines is not None:
            self._lines.write(f"{progress.to_json()}\n")
            self._lines.flush()


def table(batches: list[BatchProgress]) -> Table:
    made = Table("batch", "at", "records", "records/s", "lag", "watermark", "too late")
    for batch in batches:
        behind = ", ".join(f"{key}: {lag}" for key, lag in sorted(batch.lag.items()) if lag)
        made.add_row(
            str(batch.batch),
            batch.at,
            f"{batch.rows:,}",
            f"{batch.rows_per_second:,.0f}",
            behind or "0",
            batch.watermark or "",
            str(batch.dropped_late),
        )
    return made
