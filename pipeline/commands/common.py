"""Arguments that several jobs have."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

from pipeline import session
from pipeline.errors import PipelineError
from pipeline.ranges import EARLIEST, LATEST, RangeBounds, parse_offsets, parse_time

NAMED = {"earliest": EARLIEST, "latest": LATEST}


def add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bootstrap", required=True, metavar="HOST:PORT", help="brokers to begin with")
    parser.add_argument(
        "--property",
        dest="properties",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a property of librdkafka, for security; repeatable",
    )


def add_topics(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--topics", type=split, metavar="T[,T…]", default=(), help="names of topics")
    which.add_argument("--pattern", metavar="REGEX", help="all topics whose whole name matches")


def add_spark(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--master", help="Spark's master: local[N], spark://…, yarn, k8s://… (local[*])")
    parser.add_argument(
        "--conf", metavar="KEY=VALUE", action="append", default=[], help="a property of Spark; repeatable"
    )


def add_connector(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--option",
        dest="options",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="an option of Spark's Kafka connector, like kafka.security.protocol=SSL; repeatable",
    )


def add_starting(parser: argparse.ArgumentParser) -> None:
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--starting", metavar="OFFSETS", help="earliest, latest, or JSON; without it, continue after what was loaded"
    )
    start.add_argument("--from-time", metavar="TIME", help="from the first record at or after this ISO 8601 time, UTC")


def add_ending(parser: argparse.ArgumentParser) -> None:
    end = parser.add_mutually_exclusive_group()
    end.add_argument(
        "--ending", metavar="OFFSETS", help='latest, or JSON like {"clicks": {"0": 23}}; that one excluded'
    )
    end.add_argument("--until-time", metavar="TIME", help="up to the first record at or after this time")


def bounds(offsets: str | None, time: str | None) -> RangeBounds:
    if time is not None:
        return RangeBounds(at_ms=parse_time(time))
    if offsets is None:
        return RangeBounds()
    return RangeBounds(named=NAMED[offsets]) if offsets in NAMED else RangeBounds(offsets=parse_offsets(offsets))


def pairs(words: Sequence[str]) -> dict[str, str]:
    """KEY=VALUE words as a mapping. Raises PipelineError for one without an equals sign."""
    for word in words:
        if "=" not in word:
            raise PipelineError(f"{word!r} is not of the form KEY=VALUE")
    return dict(word.split("=", 1) for word in words)


def split(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


def spark_of(job: str, options: argparse.Namespace) -> SparkSession:
    return session.start(job, options.master, pairs(options.conf))


def say(line: str) -> None:
    """A line of a job's output."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
