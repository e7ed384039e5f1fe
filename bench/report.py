"""Results on the terminal: a table for each load, and the goals that Odradek reaches or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.table import Table

from bench.figures import FIGURES, Spread, ratio
from bench.goals import verdicts
from bench.peers import BASE, PEERS
from bench.results import Result

# Where there is no terminal to fit into.
WIDTH = 140


def console() -> Console:
    found = Console()
    return found if found.is_terminal else Console(width=WIDTH)


def cell(key: str, one: Mapping[str, Spread], base: Mapping[str, Spread]) -> str:
    """`median ×ratio`, and below it `least–greatest`, as far as there is each."""
    if key not in one:
        return "–"
    digits = FIGURES[key].digits
    median, least, greatest, rounds = one[key]
    text = f"{median:,.{digits}f}"
    times = ratio(one, base, key) if one is not base else None
    if times is not None:
        text += f" [bold]×{times:.2f}[/bold]"
    if rounds > 1:
        text += f"\n[dim]{least:,.{digits}f}–{greatest:,.{digits}f}[/dim]"
    return text


def table_of(result: Result) -> Table:
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
        table.add_row(row.title, *(cell(key, summary, base) for key in result.figures))
    return table


def show(console: Console, result: Result) -> None:
    console.print(table_of(result))
    for row in result.peers.values():
        if row.reason:
            colour = "red" if row.failed else "dim"
            console.print(f"  {row.title}: {row.reason}", style=colour, markup=False, highlight=False)
    console.print()


def show_goals(console: Console, results: Iterable[Result]) -> None:
    table = Table(title="goals, as Odradek's median ÷ the other's", title_justify="left")
    for heading in ("load", "figure", "against", "ratio", "goal", ""):
        table.add_column(heading)
    for result in results:
        for goal, found, reached in verdicts(result.load, result.figures, result.peers):
            sign = "≤" if FIGURES[goal.figure].less_is_better else "≥"
            mark = "[green]reached[/green]" if reached else "[red]missed[/red]"
            title = FIGURES[goal.figure].title
            table.add_row(result.title, title, PEERS[goal.other].title, f"{found:.2f}", f"{sign} {goal.limit}", mark)
    if table.row_count:
        console.print(table)


def any_failed(results: Iterable[Result]) -> bool:
    return any(row.failed for result in results for row in result.peers.values())
