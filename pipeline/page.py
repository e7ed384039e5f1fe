"""The report as a single HTML file, which contains its styles and images."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from typing import NamedTuple

from pyspark.sql import Row

from pipeline import plots

MOST_ROWS = 40
"""Maximum number of rows of a table on the page. Longer tables have only a plot; the Parquet files have all rows."""


class PageHead(NamedTuple):
    """The facts at the top of the page."""

    topics: tuple[str, ...]
    source: str
    records: int
    events: int
    users: int
    first: datetime | None
    last: datetime | None
    gap: str
    window: str
    made: str


class Section(NamedTuple):
    """A table of the report, its plot, and a note for the reader."""

    table: str
    title: str
    draw: plots.Draw
    note: str
    height: float = 2.9


SECTIONS = (
    Section("events_by_type", "Events by type", plots.events_by_type, "By time of the event, in windows of {window}."),
    Section(
        "unique_users", "Unique users", plots.unique_users, "Per window of {window}: counted, and by HyperLogLog++."
    ),
    Section("session_sizes", "Sessions", plots.session_sizes, "A session ends with a pause of {gap}."),
    Section(
        "funnel",
        "Funnel",
        plots.funnel,
        "Sessions that reached each step in this order; other events may be between.",
        1.9,
    ),
    Section("top_pages", "Top pages", plots.top_pages, "By views; the narrow bars show different users.", 3.6),
    Section(
        "delays", "From event to topic", plots.delays, "Time from an event until it was sent. The quantiles are below."
    ),
)

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;color:#1f2937;background:#f3f4f6;margin:0}
main{max-width:60rem;margin:0 auto;padding:2rem 1rem}
h1{margin:0}h2{margin:0 0 .2rem}p{margin:.2rem 0 .8rem;color:#4b5563}
section{background:#fff;border:1px solid #e5e7eb;border-radius:10px;padding:1.2rem;margin:1.2rem 0}
img{width:100%;height:auto}
dl{display:flex;flex-wrap:wrap;gap:1rem;margin:1.2rem 0}
dl div{background:#fff;border:1px solid #e5e7eb;border-radius:10px;padding:.7rem 1.1rem}
dt{color:#6b7280;font-size:.8rem}dd{margin:0;font-size:1.35rem;font-variant-numeric:tabular-nums}
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}
th,td{padding:.15rem .8rem;text-align:right;border-bottom:1px solid #e5e7eb}th{color:#6b7280;font-weight:500}
summary{cursor:pointer;color:#2563eb;font-size:.85rem}
"""


def page(facts: PageHead, tables: Mapping[str, Sequence[Row]]) -> str:
    """Returns the whole file."""
    title = f"Activity of {', '.join(facts.topics)}"
    sections = "".join(section(part, facts, tables) for part in SECTIONS)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body><main>'
        f"<h1>{escape(title)}</h1><p>{escape(span(facts))}</p>{head(facts)}{sections}</main></body></html>\n"
    )


def span(facts: PageHead) -> str:
    when = (
        f"{facts.first:%Y-%m-%d %H:%M} to {facts.last:%Y-%m-%d %H:%M} UTC"
        if facts.first and facts.last
        else "no events"
    )
    return f"{when}, from {facts.source}. Generated {facts.made}."


def head(facts: PageHead) -> str:
    numbers = {
        "records": facts.records,
        "events": facts.events,
        "sent twice, or no event": facts.records - facts.events,
        "users": facts.users,
    }
    return (
        "<dl>" + "".join(f"<div><dt>{name}</dt><dd>{number:,}</dd></div>" for name, number in numbers.items()) + "</dl>"
    )


def section(part: Section, facts: PageHead, tables: Mapping[str, Sequence[Row]]) -> str:
    rows = tables[part.table]
    image = base64.b64encode(plots.svg(part.draw, rows, part.height).encode()).decode()
    more = table(tables["delay_quantiles"]) if part.table == "delays" else ""
    return (
        f'<section id="{part.table}"><h2>{part.title}</h2><p>{part.note.format(gap=facts.gap, window=facts.window)}</p>'
        f'<img alt="{part.title}" src="data:image/svg+xml;base64,{image}">{more}{folded(rows)}</section>'
    )


def folded(rows: Sequence[Row]) -> str:
    if not rows or len(rows) > MOST_ROWS:
        return ""
    return f"<details><summary>as a table</summary>{table(rows)}</details>"


def table(rows: Sequence[Row]) -> str:
    names = list(rows[0].asDict()) if rows else []
    header = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell(row[name]))}</td>" for name in names) + "</tr>" for row in rows)
    return f"<table><tr>{header}</tr>{body}</table>"


def cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else str(value)
