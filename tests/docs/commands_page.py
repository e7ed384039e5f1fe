"""Parses the part of docs/commands.md that can be run: the table of other tools' commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parents[2] / "docs" / "commands.md"


class Counterparts(NamedTuple):
    """A row of the table: command lines of different tools that do the same."""

    apache: str
    others: list[str]
    odradek: str


def counterparts() -> list[Counterparts]:
    """Returns the rows of the table, in order. Raises ValueError if a row doesn't have three cells."""
    text = PAGE.read_text().partition("## Other tools' commands")[2]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if re.match(r"\| `", line)]
    return [Counterparts(lines_of(apache)[0], lines_of(others), lines_of(ours)[0]) for apache, others, ours in rows]


def lines_of(cell: str) -> list[str]:
    return [line.replace("\\|", "|") for line in re.findall(r"`([^`]+)`", cell)]
