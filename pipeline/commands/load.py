"""odradek pipeline load."""

from __future__ import annotations

import argparse
import time

from pipeline.commands.common import (
    add_cluster,
    add_connector,
    add_ending,
    add_spark,
    add_starting,
    add_topics,
    bounds,
    pairs,
    say,
    spark_of,
)
from pipeline.decode import Decoding, Format
from pipeline.load import LoadConfig, load
from pipeline.ranges import AcceptedLosses

EXAMPLE = "odradek pipeline load --bootstrap 127.0.0.1:9092 --topics clicks --out ./store"


def arguments(parser: argparse.ArgumentParser) -> None:
    add_cluster(parser)
    add_topics(parser)
    parser.add_argument("--out", required=True, metavar="DIR", help="the store")
    add_starting(parser)
    add_ending(parser)
    add_decoding(parser)
    add_accepted(parser)
    parser.add_argument("--min-partitions", metavar="N", help="at least so many tasks, of parts of ranges")
    parser.add_argument("--max-records-per-partition", metavar="N", help="no task has more records, against skew")
    add_connector(parser)
    add_spark(parser)


def add_decoding(parser: argparse.ArgumentParser) -> None:
    formats = [one.value for one in Format]
    parser.add_argument(
        "--values", choices=formats, default="bytes", help="decode values, too, as column `data` (bytes)"
    )
    parser.add_argument(
        "--schema", metavar="FILE", help="for json a DDL or Spark's JSON of a struct, for Avro an .avsc"
    )
    parser.add_argument("--schema-id", type=int, metavar="ID", help="the only id that Confluent's frames may have")


def add_accepted(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--accept-lost", action="store_true", help="go on where retention passed what was to be loaded")
    parser.add_argument("--accept-new-partitions", action="store_true", help="go on when a topic gained partitions")
    parser.add_argument(
        "--accept-recreated", action="store_true", help="forget what was loaded of a topic's former life"
    )


def accepted(options: argparse.Namespace) -> AcceptedLosses:
    return AcceptedLosses(options.accept_lost, options.accept_new_partitions, options.accept_recreated)


def connector(options: argparse.Namespace) -> dict[str, str]:
    named = {
        "minPartitions": options.min_partitions,
        "maxRecordsPerPartition": options.max_records_per_partition,
    }
    return {**{name: value for name, value in named.items() if value}, **pairs(options.options)}


def run(options: argparse.Namespace) -> int:
    config = LoadConfig(
        bootstrap=options.bootstrap,
        out=options.out,
        topics=options.topics,
        pattern=options.pattern,
        starting=bounds(options.starting, options.from_time),
        ending=bounds(options.ending, options.until_time),
        accepted=accepted(options),
        decoding=Decoding.of(options.values, options.schema, options.schema_id),
        options=connector(options),
        properties=pairs(options.properties),
    )
    spark, began = spark_of("load", options), time.monotonic()
    done = load(spark, config)
    seconds = time.monotonic() - began
    if not done.ranges:
        say(f"{options.out}: nothing new")
        return 0
    for one in done.ranges:
        say(f"  {one}")
    say(f"{options.out}: {done.records} records, {done.quarantined} quarantined, run {done.run}")
    say(f"  in {seconds:.1f} s, {(done.records + done.quarantined) / seconds:.0f}/s")
    return 0
