"""odradek pipeline stream."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table

from pipeline.commands.common import add_cluster, add_connector, add_spark, pairs, say, spark_of, split
from pipeline.commands.load import accepted, add_accepted, add_decoding
from pipeline.decode import Decoding
from pipeline.progress import BatchProgress, parse_trigger
from pipeline.stream import StreamConfig, stream

EXAMPLE = "odradek pipeline stream --bootstrap 127.0.0.1:9092 --topics clicks --out ./store --trigger now"
LAST_BATCHES = 12


def arguments(parser: argparse.ArgumentParser) -> None:
    add_cluster(parser)
    parser.add_argument("--topics", type=split, required=True, metavar="T[,T…]", help="names of topics")
    parser.add_argument("--out", required=True, metavar="DIR", help="the store")
    parser.add_argument(
        "--trigger", default="now", help="now: what there is; 10s: each ten seconds; continuous:1s (now)"
    )
    parser.add_argument("--max-offsets", type=int, default=200_000, metavar="N", help="per batch (200000)")
    parser.add_argument("--checkpoint", metavar="DIR", help="Spark's checkpoint (OUT/_checkpoint)")
    parser.add_argument("--progress", metavar="FILE", help="append a line of JSON for each batch")
    parser.add_argument("--counts", metavar="DIR", help="events per type and window, too, as Parquet")
    parser.add_argument("--watermark", default="10 minutes", help="how late an event may be to be counted (10 minutes)")
    parser.add_argument("--window", default="10 minutes", help="of the counts (10 minutes)")
    parser.add_argument("--to-topic", metavar="T", help="instead of to the store, to a topic, at least once")
    add_decoding(parser)
    add_accepted(parser)
    add_connector(parser)
    add_spark(parser)


def run(options: argparse.Namespace) -> int:
    config = StreamConfig(
        bootstrap=options.bootstrap,
        out=options.out,
        topics=options.topics,
        trigger=parse_trigger(options.trigger),
        max_offsets=options.max_offsets,
        checkpoint=options.checkpoint,
        accepted=accepted(options),
        decoding=Decoding.of(options.values, options.schema, options.schema_id),
        counts=options.counts,
        watermark=options.watermark,
        window=options.window,
        to_topic=options.to_topic,
        options=pairs(options.options),
        properties=pairs(options.properties),
    )
    with ExitStack() as stack:
        lines = stack.enter_context(Path(options.progress).open("a")) if options.progress else None
        spark = spark_of("stream", options)
        live = stack.enter_context(Live(table([]), console=Console(), auto_refresh=False))
        total = stream(spark, config, Shown(live, lines))
    say(f"{options.out}: {total} records")
    return 0


class Shown:
    """Batches as they are done: the last ones in the terminal, all of them as lines."""

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
    for one in batches:
        behind = ", ".join(f"{key}: {lag}" for key, lag in sorted(one.lag.items()) if lag)
        made.add_row(
            str(one.batch),
            one.at,
            f"{one.rows:,}",
            f"{one.rows_per_second:,.0f}",
            behind or "0",
            one.watermark or "",
            str(one.dropped_late),
        )
    return made
