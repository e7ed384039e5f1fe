"""odradek pipeline report."""

from __future__ import annotations

from argparse import Namespace

from pipeline.commands.common import say, session_of, table_place
from pipeline.report import ReportConfig, report
from pipeline.settings import CLIENT, CONNECTOR, SPARK, parse_settings


def run(options: Namespace) -> int:
    """Runs the job. Returns the exit code."""
    settings = parse_settings(options.assignments, SPARK, CONNECTOR, CLIENT)
    place = table_place(options)
    config = ReportConfig(
        out=options.out,
        topics=tuple(options.topic),
        store=options.store,
        tables=place,
        bootstrap=options.bootstrap,
        window=options.window,
        gap=options.gap,
        funnel=options.funnel,
        top=options.top,
        options=settings[CONNECTOR],
        properties=settings[CLIENT],
    )
    say(str(report(session_of("report", options.master, settings, place), config).page))
    return 0
