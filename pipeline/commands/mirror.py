"""odradek pipeline mirror."""

from __future__ import annotations

from argparse import Namespace

from pipeline.commands.common import say, session_of
from pipeline.mirror import MirrorConfig, Round, mirror
from pipeline.settings import CONNECTOR, SOURCE, SPARK, TARGET, parse_settings


def run(options: Namespace) -> int:
    """Runs the job. Returns the exit code."""
    settings = parse_settings(options.assignments, SPARK, CONNECTOR, SOURCE, TARGET)
    config = MirrorConfig(
        source=options.source,
        target=options.target,
        topics=tuple(options.topic),
        pattern=options.pattern,
        prefix=options.prefix,
        follow_s=options.follow,
        max_records=options.max_records,
        options=settings[CONNECTOR],
        source_properties=settings[SOURCE],
        target_properties=settings[TARGET],
    )
    total = mirror(session_of("mirror", options.master, settings), config, show)
    say(f"{total} records mirrored to {options.target}")
    return 0


def show(done: Round) -> None:
    behind = ", ".join(f"{key}: {lag}" for key, lag in sorted(done.lag.items()) if lag)
    say(f"  {done.records} records in {done.seconds:.1f} s; lag {behind or 0}")
