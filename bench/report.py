"""Results on the terminal: a table for each load, and the goals that Odradek reaches or misses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.table import Table

from bench.figures import FIGURES, Spread, ratio
from bench.goals import verdicts
from bench.peers import BASE, PEERS
from bench.results import LoadResult, PeerResult

# The width if there is no terminal.
WIDTH = 140


def console() -> Console:
    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=WIDTH)


def cell(key: str, one: Mapping[str, Spread], base: Mapping[str, Spread]) -> str:
    """Returns `median ×ratio`, and below it `minimum–maximum`, as far as they exist."""
    if key not in one:
        return "–"
    median, least, greatest, rounds = one[key]
    text = figure(key, median)
    times = ratio(one, base, key) if one is not base else None
    if times is not None:
        text += f" [bold]×{times:.2f}[/bold]"
    if rounds > 1:
        text += f"\n[dim]{figure(key, least)}–{figure(key, greatest)}[/dim]"
    return text


def figure(key: str, value: float) -> str:
    return f"{value:,.{FIGURES[key].digits}f}"


def table_of(result: LoadResult) -> Table:
    base = result.peers[BASE].summary() if BASE in result.peers else {}
    rounds = max((len(row.samples) for row in result.peers.values()), default=0)
    table = Table(
        title=f"{result.title} [dim]({result.load}; {result.tool}; {rounds} rounds)[/dim]", title_justify="left"
    )
    table.add_column("peer", no_wrap=True)
    for key in result.figures:
        table.add_column(f"{FIGURES[key].title}\n[dim]{FIGURES[key].unit}[/dim]", justify="right", no_wrap=True)
    for name, row in result.peers.items():
        summary = base if name == BASE else row.summary()
        table.add_row(titled(row, result.figures), *(cell(key, summary, base) for key in result.figures))
        if cold := row.cold():
            first = (f"[dim]{figure(key, cold[key].median) if key in cold else '–'}[/dim]" for key in result.figures)
            table.add_row("[dim]  cold: its first round[/dim]", *first)
    return table


def titled(row: PeerResult, figures: tuple[str, ...]) -> str:
    """Returns a peer's name and, below it, the length of its warm-up."""
    if not row.warm_up:
        return row.title
    rest = "" if row.is_settled(figures) else ", not stable"
    return f"{row.title}\n[dim]{len(row.warm_up)} warm-up rounds{rest}[/dim]"


def show(console: Console, result: LoadResult) -> None:
    console.print(table_of(result))
    for row in result.peers.values():
        if row.reason:
            colour = "red" if row.failed else "dim"
            console.print(f"  {row.title}: {row.reason}", style=colour, markup=False, highlight=False)
    console.print()


def show_goals(console: Console, results: Iterable[LoadResult]) -> None:
    table = Table(title="goals, as Odradek's median ÷ the other's, or against a plain limit", title_justify="left")
    for heading in ("load", "figure", "against", "ratio", "goal", ""):
        table.add_column(heading)
    for result in results:
        for goal, value, reached in verdicts(result.load, result.figures, result.peers):
            sign = "≤" if FIGURES[goal.figure].less_is_better else "≥"
            mark = "[green]reached[/green]" if reached else "[red]missed[/red]"
            title = FIGURES[goal.figure].title
            other = PEERS[goal.other].title if goal.other in PEERS else goal.other
            table.add_row(result.title, title, other, f"{value:.2f}", f"{sign} {goal.limit}", mark)
    if table.row_count:
        console.print(table)


def any_failed(results: Iterable[LoadResult]) -> bool:
    return any(row.failed for result in results for row in result.peers.values())
