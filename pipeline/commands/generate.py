"""odradek pipeline generate."""

from __future__ import annotations

import argparse
import time

from pipeline.activity import Activity
from pipeline.commands.common import add_cluster, pairs, say
from pipeline.generate import GenerateConfig, generate
from pipeline.ranges import parse_time

EXAMPLE = "odradek pipeline generate --bootstrap 127.0.0.1:9092 --topic clicks --records 100000 --seed 7"


def arguments(parser: argparse.ArgumentParser) -> None:
    add_cluster(parser)
    parser.add_argument("--topic", required=True, metavar="T", help="where to; created if need be")
    parser.add_argument(
        "--records", type=int, required=True, metavar="N", help="how many records, those sent twice included"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="the same seed and start give the same records (0)"
    )
    parser.add_argument(
        "--start", metavar="TIME", help="when the first event happens; without it, so that the last is now"
    )
    parser.add_argument("--per-second", type=float, default=20.0, metavar="N", help="events per simulated second (20)")
    parser.add_argument("--users", type=int, default=20_000, metavar="N", help="users there are (20000)")
    parser.add_argument("--pages", type=int, default=800, metavar="N", help="pages there are (800)")
    parser.add_argument("--skew", type=float, default=1.1, metavar="S", help="Zipf's exponent of pages (1.1)")
    parser.add_argument("--user-skew", type=float, default=0.5, metavar="S", help="Zipf's exponent of users (0.5)")
    parser.add_argument(
        "--late", type=float, default=0.02, metavar="SHARE", help="events that are sent minutes late (0.02)"
    )
    parser.add_argument(
        "--doubled", type=float, default=0.005, metavar="SHARE", help="events that are sent twice (0.005)"
    )
    parser.add_argument("--partitions", type=int, default=4, metavar="N", help="of a topic that is created (4)")
    parser.add_argument("--rate", type=float, default=0.0, metavar="N", help="records per second; 0 is full speed (0)")


def run(options: argparse.Namespace) -> int:
    span_ms = int(1000 * options.records / options.per_second)
    start_ms = parse_time(options.start) if options.start else int(time.time() * 1000) - span_ms
    activity = Activity(
        options.records,
        options.seed,
        start_ms,
        options.per_second,
        options.users,
        options.pages,
        options.skew,
        options.user_skew,
        options.late,
        options.doubled,
    )
    config = GenerateConfig(
        options.bootstrap, options.topic, activity, options.partitions, options.rate, pairs(options.properties)
    )
    done = generate(config)
    counts = ", ".join(f"{partition}: {records}" for partition, records in done.records.items())
    say(f"{options.topic}: {done.total} records in {done.seconds:.1f} s, {done.total / done.seconds:.0f}/s")
    say(f"  by partition: {counts}")
    return 0
