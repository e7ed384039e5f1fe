"""odradek pipeline report."""

from __future__ import annotations

import argparse

from pipeline.commands.common import add_connector, add_spark, pairs, say, spark_of, split
from pipeline.report import ReportConfig, report

EXAMPLE = "odradek pipeline report --store ./store --topics clicks --out ./report"


def arguments(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--store", metavar="DIR", help="what was loaded")
    source.add_argument("--bootstrap", metavar="HOST:PORT", help="or the topics themselves")
    parser.add_argument("--property", dest="properties", metavar="KEY=VALUE", action="append", default=[])
    parser.add_argument("--topics", required=True, type=split, metavar="T[,T…]", help="names of topics")
    parser.add_argument("--out", required=True, metavar="DIR", help="where report.html and the tables go")
    parser.add_argument("--window", default="10 minutes", help="what events and users are counted by (10 minutes)")
    parser.add_argument("--gap", default="30 minutes", help="the pause that ends a session (30 minutes)")
    parser.add_argument(
        "--funnel",
        type=split,
        default=("page_view", "search", "sign_up"),
        metavar="TYPE,TYPE…",
        help="event types in order",
    )
    parser.add_argument("--top", type=int, default=15, metavar="N", help="how many pages (15)")
    add_connector(parser)
    add_spark(parser)


def run(options: argparse.Namespace) -> int:
    config = ReportConfig(
        out=options.out,
        topics=options.topics,
        store=options.store,
        bootstrap=options.bootstrap,
        window=options.window,
        gap=options.gap,
        funnel=options.funnel,
        top=options.top,
        options=pairs(options.options),
        properties=pairs(options.properties),
    )
    say(str(report(spark_of("report", options), config).page))
    return 0
