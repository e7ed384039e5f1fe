"""odradek pipeline report."""

from __future__ import annotations

from argparse import Namespace

from pipeline.commands.common import say, spark_of
from pipeline.report import ReportConfig, report
from pipeline.settings import CLIENT, CONNECTOR, SPARK, parse_settings


def run(options: Namespace) -> int:
    """Runs the job. Returns the exit code."""
    settings = parse_settings(options.assignments, SPARK, CONNECTOR, CLIENT)
    config = ReportConfig(
        out=options.out,
        topics=tuple(options.topic),
        store=options.store,
        bootstrap=options.bootstrap,
        window=options.window,
        gap=options.gap,
        funnel=options.funnel,
        top=options.top,
        options=settings[CONNECTOR],
        properties=settings[CLIENT],
    )
    say(str(report(spark_of("report", options.master, settings), config).page))
    return 0
