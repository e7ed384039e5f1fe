"""Plots saved results: `python -m bench.plots [FOLDER]` draws them as SVG and PNG next to the JSON files."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from bench.figures import FIGURES, GB, cpu_figure, ratio
from bench.loads import CURVES, LOADS, Curve
from bench.peers import BASE, PEERS
from bench.results import RESULTS, LoadResult, saved

COLOURS = {
    "odradek": "#c0392b",
    "odradek-pure": "#e59866",
    "odradek-image": "#d98880",
    "odradek-metrics": "#af7ac5",
    "odradek-acls": "#922b21",
    "odradek-tls": "#e6b0aa",
    "kafka": "#34495e",
    "kafka-acls": "#1b2631",
    "kafka-tls": "#aeb6bf",
    "kfake": "#2980b9",
    "floor": "#95a5a6",
}
FORMATS = ("svg", "png")
LATENCY = ("p50_ms", "p99_ms", "p999_ms")
START_TIMES = ("ready_ms", "metadata_ms")
IDLE_MEMORY = ("rss_idle_mb",)
AGEING = ("cpu_s_per_gb", "private_mb")
BAR = 0.8
ROW_INCHES = 0.4
WHOLE_FROM = 100
"""Larger figures are shown without decimals."""


def write(canvas: Canvas, folder: Path, name: str) -> list[Path]:
    files = [folder / f"{name}.{ending}" for ending in FORMATS]
    canvas.tight_layout()
    matplotlib.rcParams["svg.hashsalt"] = name  # otherwise the ids in a file differ each time it is drawn
    for file in files:
        canvas.savefig(file, dpi=120, metadata={"Date": None} if file.suffix == ".svg" else None)
    pyplot.close(canvas)
    return files


def label(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= WHOLE_FROM else f"{value:.2f}"


def bars(axes: Axes, labels: Sequence[str], series: Mapping[str, Sequence[float | None]]) -> None:
    """Draws horizontal bars: a group for each label, a bar for each peer. A missing value has no bar."""
    height = BAR / max(1, len(series))
    for place, (peer, values) in enumerate(series.items()):
        at = [row + place * height for row in range(len(labels))]
        widths = [value or 0.0 for value in values]
        drawn = axes.barh(at, widths, height, label=PEERS[peer].title, color=COLOURS[peer])
        axes.bar_label(drawn, [label(value) for value in values], padding=2, fontsize=7)
    axes.set_yticks([row + BAR / 2 - height / 2 for row in range(len(labels))], labels)
    axes.invert_yaxis()
    axes.margins(x=0.1, y=0.01)  # space for the figures at the end of the longest bars
    axes.legend(fontsize=8)


def costs(folder: Path, results: Sequence[LoadResult]) -> list[Path]:
    """Draws CPU per unit of work for every load, as a ratio to the base peer."""
    shown = [
        (result, key)
        for result in results
        if (key := cpu_figure(result.figures)) and BASE in result.peers and result.load in LOADS
    ]
    if not shown:
        return []
    summaries = [{name: row.summary() for name, row in result.peers.items()} for result, _ in shown]
    series = {
        peer: [
            ratio(summary.get(peer, {}), summary[BASE], key) for summary, (_, key) in zip(summaries, shown, strict=True)
        ]
        for peer in PEERS
        if peer != BASE and any(peer in summary for summary in summaries)
    }
    canvas, axes = pyplot.subplots(figsize=(9, 1 + ROW_INCHES * len(shown)))
    bars(axes, [result.title for result, _ in shown], series)
    axes.axvline(1.0, color=COLOURS[BASE], linewidth=1, label=PEERS[BASE].title)
    axes.legend(fontsize=8)
    axes.set_xlabel(f"broker CPU per unit of work, {PEERS[BASE].title} = 1 (less is better)")
    return write(canvas, folder, "costs")


def panels(folder: Path, name: str, shown: Sequence[tuple[LoadResult, Sequence[str]]]) -> list[Path]:
    """Draws medians of figures with the same unit, a panel for each result."""
    if not shown:
        return []
    canvas, grid = pyplot.subplots(1, len(shown), figsize=(5.5 * len(shown), 3.5), squeeze=False)
    for axes, (result, keys) in zip(grid[0], shown, strict=True):
        summaries = {name: row.summary() for name, row in result.peers.items() if row.samples}
        series = {
            name: [summary[key].median if key in summary else None for key in keys]
            for name, summary in summaries.items()
        }
        bars(axes, [FIGURES[key].title for key in keys], series)
        axes.set_title(result.title, fontsize=9)
        axes.set_xlabel(f"{FIGURES[keys[0]].unit} (less is better)")
    return write(canvas, folder, name)


def latencies(folder: Path, results: Sequence[LoadResult]) -> list[Path]:
    """Draws percentiles of end-to-end latency, a panel for each load."""
    return panels(folder, "latency", [(result, LATENCY) for result in results if set(LATENCY) <= set(result.figures)])


def start_up(folder: Path, results: Sequence[LoadResult]) -> list[Path]:
    """Draws the duration of a start, and the memory of a started broker."""
    starts = [result for result in results if START_TIMES[0] in result.figures]
    return panels(folder, "start-up", [(result, keys) for result in starts for keys in (START_TIMES, IDLE_MEMORY)])


def growth(folder: Path, curve: Curve, results: Mapping[str, LoadResult]) -> list[Path]:
    """Draws a curve: medians as lines, spreads as bands, both axes logarithmic."""
    canvas, axes = pyplot.subplots(figsize=(6, 4))
    for peer in PEERS:
        measured = [
            (value, results[load.name].peers[peer].summary()[curve.figure])
            for value, load in curve.points.items()
            if load.name in results and peer in results[load.name].peers
            if curve.figure in results[load.name].peers[peer].summary()
        ]
        if measured:
            values = [value for value, _ in measured]
            axes.plot(
                values, [spread.median for _, spread in measured], "o-", color=COLOURS[peer], label=PEERS[peer].title
            )
            least, greatest = zip(*((spread.least, spread.greatest) for _, spread in measured), strict=True)
            axes.fill_between(values, least, greatest, color=COLOURS[peer], alpha=0.15)
    if not axes.lines:
        pyplot.close(canvas)
        return []
    axes.set(xscale="log", yscale="log", xlabel=curve.axis, title=curve.title)
    axes.set_ylabel(f"{FIGURES[curve.figure].title} ({FIGURES[curve.figure].unit})")
    axes.legend(fontsize=8)
    return write(canvas, folder, curve.name)


def ages(folder: Path, result: LoadResult) -> list[Path]:
    """Draws how cost and memory change with a broker's age: each round of a long run, with the warm-up before zero."""
    canvas, grid = pyplot.subplots(1, len(AGEING), figsize=(5.5 * len(AGEING), 3.5))
    for axes, key in zip(grid, AGEING, strict=True):
        for name, row in result.peers.items():
            rounds = [*row.warm_up, *row.samples]
            written_gb = [
                (at - len(row.warm_up)) * result.records * result.record_bytes / GB for at in range(len(rounds))
            ]
            measured = [(at, sample[key]) for at, sample in zip(written_gb, rounds, strict=True) if key in sample]
            axes.plot(*zip(*measured, strict=True), "o-", markersize=3, color=COLOURS[name], label=row.title)
        axes.set(ylim=(0, None), xlabel="GB written since it was warm", title=FIGURES[key].title)
        axes.set_ylabel(FIGURES[key].unit)
        axes.legend(fontsize=8)
    return write(canvas, folder, result.load)


def draw(folder: Path) -> list[Path]:
    """Draws every plot that the results in a folder have data for; returns the files."""
    results = {result.load: result for result in saved(folder)}
    rows = [results[name] for name in LOADS if name in results]
    files = costs(folder, rows) + latencies(folder, rows) + start_up(folder, rows)
    for curve in CURVES.values():
        files += growth(folder, curve, results)
    if "long-run" in results:
        files += ages(folder, results["long-run"])
    return files


if __name__ == "__main__":
    for made in draw(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS):
        print(made)
