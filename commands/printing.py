"""The output of commands: tables on a terminal, a line of JSON for each row elsewhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

Row: TypeAlias = Mapping[str, object]

GAP: Final = "  "
NOTHING: Final = "-"
"""Stands in a table where there is no value."""


class Output:
    """Standard output, in one of two layouts."""

    def __init__(self, layout: str | None) -> None:
        """`layout` is "table" or "json"; chosen by whether a terminal reads it, without one."""
        self.is_json = (layout or ("table" if sys.stdout.isatty() else "json")) == "json"

    def rows(self, columns: Sequence[str], rows: Iterable[Row], *, title: str | None = None, empty: str = "") -> None:
        """Prints rows that have these keys. JSON has what else they hold too; a table has `title` above it, and where
        there are no rows it says `empty` in place of one."""
        if self.is_json:
            for row in rows:
                self.line(as_json(row))
            return
        cells = [[cell(row.get(column)) for column in columns] for row in rows]
        if title:
            self.line(title)
        if not cells:
            self.line(empty or "(none)")
            return
        numeric = {column for column in range(len(columns)) if all(_is_number(row[column]) for row in cells)}
        for line in aligned([[column.replace("_", " ").upper() for column in columns], *cells], numeric):
            self.line(line)

    def document(self, document: Row, tables: Iterable[tuple[str, Sequence[str], Iterable[Row]]]) -> None:
        """Prints one thing: a line of JSON with all of it, or tables of its parts with a title each."""
        if self.is_json:
            self.line(as_json(document))
            return
        for number, (title, columns, rows) in enumerate(tables):
            if number:
                self.line("")
            self.rows(columns, rows, title=title)

    def line(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")

    def note(self, text: str) -> None:
        """Says something that is no result."""
        sys.stdout.flush()
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def as_json(row: Row) -> str:
    """Returns a row as a line of JSON."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def cell(value: object) -> str:
    """Returns a value as a table has it."""
    if value is None or value == "" or value == []:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ",".join(f"{key}={item}" for key, item in value.items()) or NOTHING
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)


def aligned(rows: Sequence[Sequence[str]], numeric: Iterable[int] = ()) -> list[str]:
    """Returns rows as lines whose columns stand below each other, numeric ones to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    right = set(numeric)
    return [
        GAP.join(
            text.rjust(width) if column in right else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _is_number(text: str) -> bool:
    return text == NOTHING or text.removeprefix("-").replace(".", "", 1).isdecimal()
