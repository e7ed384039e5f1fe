"""odradek pipeline replay."""

from __future__ import annotations

import time
from argparse import Namespace

from pipeline.commands.common import say, session_of, table_place
from pipeline.ranges import parse_at
from pipeline.replay import ReplayConfig, replay
from pipeline.settings import CLIENT, SPARK, parse_settings


def run(options: Namespace) -> int:
    """Runs the job. Returns the exit code."""
    settings = parse_settings(options.assignments, SPARK, CLIENT)
    now_ms = int(time.time() * 1000)
    place = table_place(options)
    config = ReplayConfig(
        bootstrap=options.bootstrap,
        store=options.store,
        tables=place,
        topics=tuple(options.topic),
        to=options.to_topic,
        pace=options.pace,
        append=options.accept_records,
        from_ms=parse_at("--from", options.start, now_ms),
        until_ms=parse_at("--until", options.until, now_ms),
        properties=settings[CLIENT],
    )
    counts = replay(session_of("replay", options.master, settings, place), config)
    for key, count in sorted(counts.items()):
        say(f"  {key}: {count} records")
    say(f"{sum(counts.values())} records replayed")
    return 0
