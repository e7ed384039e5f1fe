"""Collects the lines that Odradek logs, for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from broker.logging import NAMES, written_by


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

    def taken(level: int, event: str, fields: dict[str, Any]) -> None:
        logger = fields.pop("logger")
        take(Line(NAMES[level], event, fields, logger))

    with written_by(taken):
        yield
