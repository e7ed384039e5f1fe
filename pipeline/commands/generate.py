"""odradek pipeline generate."""

from __future__ import annotations

import time
from argparse import Namespace

from pipeline.activity import Activity
from pipeline.commands.common import say
from pipeline.generate import GenerateConfig, generate
from pipeline.ranges import parse_moment
from pipeline.settings import CLIENT, parse_settings


def run(options: Namespace) -> int:
    """Runs the job. Returns the exit code."""
    span_ms = int(1000 * options.records / options.per_second)
    now_ms = int(time.time() * 1000)
    start_ms = parse_moment(options.start, now_ms) if options.start else now_ms - span_ms
    settings = parse_settings(options.assignments, CLIENT)
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
        options.bootstrap, options.topic, activity, options.partitions, options.rate, settings[CLIENT]
    )
    done = generate(config)
    counts = ", ".join(f"{partition}: {records}" for partition, records in done.records.items())
    say(f"{options.topic}: {done.total} records in {done.seconds:.1f} s, {done.total / done.seconds:.0f}/s")
    say(f"  by partition: {counts}")
    return 0
