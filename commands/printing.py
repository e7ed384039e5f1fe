"""The output of commands: tables on a terminal, else a line of JSON for each row."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

Row: TypeAlias = Mapping[str, object]

GAP: Final = "  "
NOTHING: Final = "-"
"""A table's cell without a value."""


class Output:
    """Standard output, in one of two layouts."""

    def __init__(self, layout: str | None) -> None:
        """`layout` is "table" or "json"; None chooses a table if the output is a terminal."""
        self.is_json = (layout or ("table" if sys.stdout.isatty() else "json")) == "json"
        self.has_errors = False
        """True if a printed row has an `error`; the command's exit code is FAILED then."""

    def rows(self, columns: Sequence[str], rows: Iterable[Row], *, title: str | None = None, empty: str = "") -> None:
        """Prints rows. JSON has all fields of a row; a table has the columns, and `error` if a row has an error, with
        `title` above it, and `empty` if there are no rows."""
        rows = self._seen(rows)
        if self.is_json:
            for row in rows:
                self.line(as_json(row))
            return
        if "result" not in columns and any(row.get("error") for row in rows):
            columns = (*columns, "error")
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
        """Prints one document: as a line of JSON, or as tables of its parts, each with a title."""
        if self.is_json:
            for _, _, rows in tables:
                self._seen(rows)
            self.line(as_json(document))
            return
        for number, (title, columns, rows) in enumerate(tables):
            if number:
                self.line("")
            self.rows(columns, rows, title=title)

    def _seen(self, rows: Iterable[Row]) -> Sequence[Row]:
        listed = list(rows)
        self.has_errors = self.has_errors or any(row.get("error") for row in listed)
        return listed

    def failed(self, error: str) -> None:
        """Prints an error that belongs to no row to standard error."""
        self.has_errors = True
        self.note(f"odradek: {error}")

    def line(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")

    def note(self, text: str) -> None:
        """Prints a message to standard error."""
        sys.stdout.flush()
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def error_of(error: str | None) -> Mapping[str, object]:
    """Returns the field `error` of a row; nothing if there is none."""
    return {"error": error} if error else {}


def as_json(row: Row) -> str:
    """Returns a row as a line of JSON."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def cell(value: object) -> str:
    """Returns a value as the text of a table's cell."""
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
    """Returns rows as lines with aligned columns, numeric columns to the right."""
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
