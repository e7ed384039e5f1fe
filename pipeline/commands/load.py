"""odradek pipeline load."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

from pipeline.cluster import Cluster
from pipeline.commands.common import say, session_of, table_place
from pipeline.decode import Decoding
from pipeline.errors import PipelineError
from pipeline.iceberg.load import load_tables
from pipeline.iceberg.reprocess import reprocess
from pipeline.iceberg.table import IcebergTable
from pipeline.load import LoadConfig, LoadOutcome, load
from pipeline.metrics import metrics_text, write_text
from pipeline.ranges import AcceptedLosses, parse_bounds
from pipeline.settings import CLIENT, CONNECTOR, SPARK, parse_settings


def accepted(options: Namespace) -> AcceptedLosses:
    """Returns the losses that the options accept."""
    return AcceptedLosses(options.accept_lost, options.accept_new_partitions, options.accept_recreated)


def connector(options: Namespace, settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the options of Spark's Kafka connector."""
    named = {"minPartitions": options.min_partitions, "maxRecordsPerPartition": options.max_records_per_partition}
    return {**{name: value for name, value in named.items() if value}, **settings}


def run(options: Namespace) -> int:
    """Runs the job. Returns the exit code."""
    settings = parse_settings(options.assignments, SPARK, CONNECTOR, CLIENT)
    now_ms = int(time.time() * 1000)
    config = LoadConfig(
        bootstrap=options.bootstrap,
        out=options.out or "",
        topics=tuple(options.topic),
        pattern=options.pattern,
        starting=parse_bounds(options.start, now_ms),
        ending=parse_bounds(options.until, now_ms),
        accepted=accepted(options),
        decoding=Decoding.of(options.values, options.schema, options.schema_id, options.schema_registry),
        options=connector(options, settings[CONNECTOR]),
        properties=settings[CLIENT],
    )
    place = table_place(options)
    spark, began = session_of("load", options.master, settings, place), time.monotonic()
    if place is not None:
        if options.dead_letters:
            show_reprocessed([place.table(spark, topic) for topic in config.topics], config.decoding)
            return 0
        done = load_tables(spark, config, place)
    else:
        done = {options.out: load(spark, config)}
    seconds = time.monotonic() - began
    for name, outcome in done.items():
        show(name, outcome, seconds)
    if options.metrics_file:
        cluster = Cluster(config.bootstrap, config.properties)
        write_text(Path(options.metrics_file), metrics_text(spark, cluster, done, seconds))
    return 0


def show_reprocessed(tables: Sequence[IcebergTable], decoding: Decoding) -> None:
    """Decodes the dead letters of tables again, and prints the outcomes."""
    if not tables:
        raise PipelineError("--dead-letters needs --topic, because it doesn't read topics")
    for table in tables:
        done = reprocess(table, decoding)
        say(f"{table.name}: {done.records} dead letters are records now, {done.quarantined} are left, run {done.run}")


def show(place: str, done: LoadOutcome, seconds: float) -> None:
    """Prints the outcome of a run."""
    if not done.ranges:
        say(f"{place}: nothing new")
        return
    for loaded in done.ranges:
        say(f"  {loaded}")
    say(f"{place}: {done.records} records, {done.quarantined} quarantined, run {done.run}")
    say(f"  in {seconds:.1f} s, {(done.records + done.quarantined) / seconds:.0f}/s")
