"""odradek pipeline replay."""

from __future__ import annotations

import argparse

from pipeline.commands.common import add_cluster, add_spark, pairs, say, spark_of, split
from pipeline.ranges import parse_time
from pipeline.replay import ReplayConfig, replay

EXAMPLE = (
    "odradek pipeline replay --bootstrap 127.0.0.1:9092 --store ./store --topics clicks --to clicks-again --pace 60"
)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_cluster(parser)
    parser.add_argument("--store", required=True, metavar="DIR", help="what was loaded")
    parser.add_argument("--topics", required=True, type=split, metavar="T[,T…]", help="topics of the store")
    parser.add_argument("--to", metavar="T", help="another name for the one topic")
    parser.add_argument("--pace", type=float, metavar="FACTOR", help="times the recorded speed; without it, full speed")
    parser.add_argument("--append", action="store_true", help="also to a topic that has records")
    parser.add_argument("--from-time", metavar="TIME", help="records with timestamps from here")
    parser.add_argument("--until-time", metavar="TIME", help="up to here")
    add_spark(parser)


def run(options: argparse.Namespace) -> int:
    config = ReplayConfig(
        bootstrap=options.bootstrap,
        store=options.store,
        topics=options.topics,
        to=options.to,
        pace=options.pace,
        append=options.append,
        from_ms=parse_time(options.from_time) if options.from_time else None,
        until_ms=parse_time(options.until_time) if options.until_time else None,
        properties=pairs(options.properties),
    )
    counts = replay(spark_of("replay", options), config)
    for key, count in sorted(counts.items()):
        say(f"  {key}: {count} records")
    say(f"{sum(counts.values())} records replayed")
    return 0
