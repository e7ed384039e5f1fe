"""odradek pipeline mirror."""

from __future__ import annotations

import argparse

from pipeline.commands.common import add_connector, add_spark, add_topics, pairs, say, spark_of
from pipeline.mirror import MirrorConfig, Round, mirror

EXAMPLE = "odradek pipeline mirror --source 127.0.0.1:9092 --target 127.0.0.1:9192 --topics clicks"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", required=True, metavar="HOST:PORT", help="brokers to read from")
    parser.add_argument("--target", required=True, metavar="HOST:PORT", help="brokers to write to")
    add_topics(parser)
    parser.add_argument("--prefix", default="", metavar="TEXT", help="names at the target begin with it")
    parser.add_argument("--follow", type=float, metavar="SECONDS", help="go on, looking for more after each pause")
    parser.add_argument("--max-records", type=int, default=1_000_000, metavar="N", help="per round (1000000)")
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}-property", metavar="KEY=VALUE", action="append", default=[], help="a property of librdkafka"
        )
    add_connector(parser)
    add_spark(parser)


def run(options: argparse.Namespace) -> int:
    config = MirrorConfig(
        source=options.source,
        target=options.target,
        topics=options.topics,
        pattern=options.pattern,
        prefix=options.prefix,
        follow_s=options.follow,
        max_records=options.max_records,
        options=pairs(options.options),
        source_properties=pairs(options.source_property),
        target_properties=pairs(options.target_property),
    )
    total = mirror(spark_of("mirror", options), config, show)
    say(f"{total} records mirrored to {options.target}")
    return 0


def show(done: Round) -> None:
    behind = ", ".join(f"{key}: {lag}" for key, lag in sorted(done.lag.items()) if lag)
    say(f"  {done.records} records in {done.seconds:.1f} s; lag {behind or 0}")
