"""Tables with a search, a sorted column and pages of rows, all of it in the URL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from commands.errors import misuse
from commands.printing import Row
from console.rendering import address
from console.visit import PageRequest

PAGE_ROWS: Final = 100
"""Rows of one page of a table. A browser needs most of the time until the first paint for the layout of the rows."""


class Column(NamedTuple):
    """A column that can sort the table."""

    key: str
    title: str
    is_number: bool = False


class Table(NamedTuple):
    """The rows of a table that a URL names."""

    path: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    total: int
    """The number of rows that match the search."""
    search: str
    sort: str
    falls: bool
    """True if the largest value comes first."""
    page: int
    kept: Mapping[str, str]
    """Further parameters of the URL."""

    @property
    def pages(self) -> int:
        return max(-(-self.total // PAGE_ROWS), 1)

    def url(self, **changed: object) -> str:
        """Returns the URL of this table with other parameters."""
        order = ("-" if self.falls else "") + self.sort
        return address(self.path, **{**self.kept, "q": self.search, "sort": order, "page": self.page, **changed})

    def sorted_url(self, column: Column) -> str:
        """Returns the URL that sorts by a column, in the other direction if it sorts by it already."""
        falls = not self.falls if column.key == self.sort else column.is_number
        return self.url(sort=("-" if falls else "") + column.key, page=None)

    def direction(self, column: Column) -> str:
        """Returns the value of aria-sort of a column; empty if another column sorts."""
        return "" if column.key != self.sort else "descending" if self.falls else "ascending"


def table_of(
    visit: PageRequest,
    path: str,
    columns: Sequence[Column],
    rows: Sequence[Row],
    *,
    kept: Mapping[str, str] | None = None,
) -> Table:
    """Returns the table that the request's URL names; it searches the first column. Raises CommandError."""
    search, order = visit.query("q"), visit.query("sort", columns[0].key)
    sort, falls = order.removeprefix("-"), order.startswith("-")
    if sort not in {column.key for column in columns}:
        raise misuse(f"sort {sort[:40]}: expected one of {', '.join(column.key for column in columns)}")
    wanted = search.lower()
    matching = [row for row in rows if wanted in str(row[columns[0].key]).lower()]
    listed = sorted_rows(matching, sort, falls=falls)
    page = min(visit.number("page", 1, least=1), max(-(-len(listed) // PAGE_ROWS), 1))
    shown = listed[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    return Table(path, columns, shown, len(listed), search, sort, falls, page, kept or {})


def sorted_rows(rows: Sequence[Row], key: str, *, falls: bool) -> list[Row]:
    """Returns rows sorted by a column; rows without a value come last."""
    known = [row for row in rows if row.get(key) is not None]
    unknown = [row for row in rows if row.get(key) is None]
    return [*sorted(known, key=lambda row: _rank(row[key]), reverse=falls), *unknown]


def _rank(value: object) -> tuple[float, str]:
    return (float(value), "") if isinstance(value, int | float) else (0.0, str(value).lower())
