"""Collects the lines that Odradek logs, for tests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

import structlog

from broker.logging import configure


class Line(NamedTuple):
    level: str
    event: str
    fields: dict[str, Any]
    logger: str


def problems(lines: Iterable[Line]) -> list[Line]:
    """Returns the warnings and errors."""
    return [line for line in lines if line.level in ("warning", "error", "critical")]


def errors(lines: Iterable[Line]) -> list[Line]:
    return [line for line in lines if line.level in ("error", "critical")]


@contextmanager
def log_lines(take: Callable[[Line], object]) -> Iterator[None]:
    """Passes log lines to a function instead of writing them."""

    def taken(_: object, level: str, fields: MutableMapping[str, Any]) -> NoReturn:
        rest = {name: value for name, value in fields.items() if name not in ("event", "logger")}
        if rest.get("exc_info") is True:
            rest["exc_info"] = sys.exc_info()[1]
        take(Line("error" if level == "exception" else level, fields["event"], rest, fields["logger"]))
        raise structlog.DropEvent

    configure(sys.stderr)
    processors = structlog.get_config()["processors"]  # loggers that are bound already have this list, too
    before = [*processors]
    processors[:] = [taken]
    try:
        yield
    finally:
        processors[:] = before
