"""The plots of the report: turns rows of a table into an SVG image."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter
from pyspark.sql import Row

COLOURS = ("#2563eb", "#f59e0b", "#10b981", "#ef4444", "#8b5cf6", "#14b8a6")
MOST_EVENTS = 40
"""Sessions with more events share the last bar; otherwise a robot's sessions would make all bars too small."""

INK, QUIET = "#1f2937", "#d1d5db"

matplotlib.rcParams.update(
    {
        "font.family": "sans-serif",
        "font.size": 9,
        "text.color": INK,
        "axes.edgecolor": QUIET,
        "axes.labelcolor": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#eef0f3",
        "svg.hashsalt": "odradek",
    }
)

Draw = Callable[[Axes, Sequence[Row]], None]


def svg(draw: Draw, rows: Sequence[Row], height: float = 2.9) -> str:
    """Draws one plot, as the text of an SVG file."""
    figure = Figure(figsize=(8, height), layout="constrained")
    draw(figure.subplots(), rows)
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def thousands(*axes: Axis) -> None:
    for axis in axes:
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def times(axes: Axes) -> None:
    """Labels the ticks with hours and minutes, and the date once."""
    locator = AutoDateLocator()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    thousands(axes.yaxis)
    axes.margins(x=0)


def events_by_type(axes: Axes, rows: Sequence[Row]) -> None:
    starts = sorted({row["window_start"] for row in rows})
    kinds = sorted({row["type"] for row in rows})
    counts = {(row["window_start"], row["type"]): row["events"] for row in rows}
    stacks = [[counts.get((start, kind), 0) for start in (*starts, *starts[-1:])] for kind in kinds]
    axes.stackplot(with_end(starts), stacks, labels=kinds, colors=COLOURS, step="post")
    axes.set_ylabel("events per window")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False, ncols=max(1, len(kinds)))
    times(axes)


def with_end(starts: Sequence[datetime]) -> list[float]:
    """Returns the starts of windows, and the end of the last window, which needs it for its width."""
    ends = [last + min(gaps(starts), default=timedelta(hours=1)) for last in starts[-1:]]
    return [float(date2num(at)) for at in (*starts, *ends)]


def gaps(starts: Sequence[datetime]) -> Iterator[timedelta]:
    return (after - before for before, after in pairwise(starts))


def unique_users(axes: Axes, rows: Sequence[Row]) -> None:
    starts = with_end([row["window_start"] for row in rows])
    widths = {"exact": (COLOURS[0], 2.5, "-"), "approximate": (COLOURS[1], 1.2, "--")}
    for name, (colour, width, style) in widths.items():
        counts = [row[name] for row in (*rows, *rows[-1:])]
        axes.step(starts, counts, where="post", color=colour, label=name, linewidth=width, linestyle=style)
    axes.set_ylabel("users per window")
    axes.set_ylim(bottom=0)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False, ncols=2)
    times(axes)


def session_sizes(axes: Axes, rows: Sequence[Row]) -> None:
    sizes = Counter[int]()
    for row in rows:
        sizes[min(row["events"], MOST_EVENTS)] += row["sessions"]
    axes.bar(list(sizes.keys()), list(sizes.values()), color=COLOURS[0])
    axes.set_xlabel(f"events in a session ({MOST_EVENTS}: or more)")
    axes.set_ylabel("sessions")
    thousands(axes.yaxis)


def top_pages(axes: Axes, rows: Sequence[Row]) -> None:
    names = [row["page"] for row in rows]
    axes.barh(names, [row["views"] for row in rows], color=COLOURS[0], label="views")
    axes.barh(names, [row["users"] for row in rows], color=COLOURS[1], height=0.35, label="users")
    axes.invert_yaxis()
    axes.legend(frameon=False)
    thousands(axes.xaxis)


def funnel(axes: Axes, rows: Sequence[Row]) -> None:
    names = [f"{row['step']}. {row['type']}" for row in rows]
    counts = [row["sessions"] for row in rows]
    bars = axes.barh(names, counts, color=COLOURS[: len(rows)])
    whole = max(1, counts[0] if counts else 1)
    axes.bar_label(bars, [f" {count:,} ({count / whole:.1%})" for count in counts])
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlabel("sessions")
    thousands(axes.xaxis)


def delays(axes: Axes, rows: Sequence[Row]) -> None:
    names = ["more" if row["to_seconds"] is None else f"≤ {row['to_seconds']:g} s" for row in rows]
    axes.bar(names, [row["events"] for row in rows], color=COLOURS[2])
    axes.set_yscale("log")
    thousands(axes.yaxis)
    axes.set_ylabel("events")
    axes.tick_params(axis="x", labelrotation=30)
