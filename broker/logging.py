"""Structured logs on standard error: readable lines on a terminal, otherwise one JSON object per line."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

TRACE, DEBUG, INFO, WARN, ERROR, FATAL = 5, 10, 20, 30, 40, 50
"""Levels, by the standard library's numbers."""

LEVELS: Final = {"TRACE": TRACE, "DEBUG": DEBUG, "INFO": INFO, "WARN": WARN, "ERROR": ERROR, "FATAL": FATAL}
"""The names of levels in Kafka's tools (org.apache.kafka.clients.admin.LogLevelConfig)."""

NAMES: Final = {TRACE: "trace", DEBUG: "debug", INFO: "info", WARN: "warning", ERROR: "error", FATAL: "critical"}
"""The names of levels in log lines."""

COLOURS: Final = {WARN: 33, ERROR: 31, FATAL: 31}
"""ECMA-48's numbers of the colours in which a terminal shows levels."""

ROOT: Final = "root"


class Levels:
    """The levels of loggers, by name. A logger without a level has that of the name before its last dot, and so on up
    to the root.

    Levels belong to the process, as in a JVM, and end with it (KIP-412).
    """

    def __init__(self) -> None:
        self._own = {ROOT: INFO}
        self._names: dict[str, None] = {}

    def register(self, name: str) -> None:
        """Adds a logger to those whose levels can be described and set."""
        self._names[name] = None

    def __contains__(self, name: str) -> bool:
        return name == ROOT or name in self._names

    def of(self, name: str) -> int:
        """Returns the level of a logger: it logs events of this level and above."""
        own = self._own
        while name:
            if name in own:
                return own[name]
            name = name.rpartition(".")[0]
        return own[ROOT]

    def set(self, name: str, level: int) -> None:
        """Sets the level of a logger, and of the loggers below it that have no level of their own."""
        self._own[name] = level

    def unset(self, name: str) -> None:
        """Removes a logger's own level."""
        self._own.pop(name, None)

    def described(self) -> dict[str, str]:
        """Returns the level of each logger, and of the root, by name."""
        names = {number: text for text, number in LEVELS.items()}
        return {name: names[self.of(name)] for name in (ROOT, *sorted(self._names))}


levels: Final = Levels()


class Logger:
    """Logs events of one part of the broker: a short fixed text, and the varying values as fields."""

    __slots__ = ("_fields", "name")

    def __init__(self, name: str, fields: dict[str, object] | None = None) -> None:
        self.name = name
        self._fields = fields or {}

    def bind(self, **fields: object) -> Logger:
        """Returns a logger that adds these fields to every event."""
        return Logger(self.name, {**self._fields, **fields})

    def is_enabled_for(self, level: int) -> bool:
        """True if events of this level are logged."""
        return levels.of(self.name) <= level

    def debug(self, event: str, **fields: object) -> None:
        """Logs an event for developers of the broker; hidden unless its level is set."""
        self._log(DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Logs an event that an operator wants to find later."""
        self._log(INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Logs an event that an operator may want to act on."""
        self._log(WARN, event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Logs an event that an operator must look at."""
        self._log(ERROR, event, fields)

    def critical(self, event: str, **fields: object) -> None:
        """Logs the reason why the broker can't continue."""
        self._log(FATAL, event, fields)

    def exception(self, event: str, **fields: object) -> None:
        """Logs an error with the traceback of the current exception: a bug of the broker."""
        self._log(ERROR, event, {**fields, "exc_info": sys.exception()})

    def _log(self, level: int, event: str, fields: Mapping[str, object]) -> None:
        """Logs an event if its level is enabled. The field `exc_info` is an exception whose traceback is shown."""
        if levels.of(self.name) <= level:
            _writers[-1](level, event, {"logger": self.name, **self._fields, **fields})


class Bridge(logging.Handler):
    """Formats the log lines of `storage`, which uses the standard library's logging, like all others."""

    def emit(self, record: logging.LogRecord) -> None:
        tell = get_logger(record.name).error if record.levelno >= logging.ERROR else get_logger(record.name).warning
        fields = dict(getattr(record, "fields", {}))
        if record.exc_info is not None:
            fields["exc_info"] = record.exc_info[1]
        tell(record.getMessage(), **fields)


def take_over_storage() -> None:
    """Makes `storage` log like the rest of the broker from now on. For the process of a broker."""
    storage = logging.getLogger("storage")
    if not storage.handlers:
        storage.addHandler(Bridge())
    storage.propagate = False


def get_logger(name: str) -> Logger:
    """Returns the logger of a part of the broker, such as "listener". It costs nothing until it logs."""
    levels.register(name)
    return Logger(name)


Writer = Callable[[int, str, dict[str, object]], None]
"""Writes an event: its level, its text, and its fields."""


def write(level: int, event: str, fields: dict[str, object]) -> None:
    """Writes an event to standard error."""
    stream, error = sys.stderr, fields.pop("exc_info", None)
    trace = "".join(traceback.format_exception(error)).rstrip() if isinstance(error, BaseException) else ""
    line = readable(level, event, fields, trace) if stream.isatty() else as_json(level, event, fields, trace)
    stream.write(f"{line}\n")
    stream.flush()


def as_json(level: int, event: str, fields: dict[str, object], trace: str) -> str:
    """Returns a JSON object."""
    now_us = time.time_ns() // 1_000
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now_us // 1_000_000))
    if trace:
        fields["exception"] = trace
    head = {"event": event, "level": NAMES[level], "timestamp": f"{at}.{now_us % 1_000_000:06}Z"}
    return json.dumps({**fields, **head}, default=repr)


def readable(level: int, event: str, fields: dict[str, object], trace: str) -> str:
    """Returns a line, and the lines of the traceback. The level has a colour, unless NO_COLOR is set."""
    name = f"[{NAMES[level]:<8}]"
    if level in COLOURS and not os.environ.get("NO_COLOR"):
        name = f"\x1b[{COLOURS[level]}m{name}\x1b[0m"
    values = (f"{key}={value if isinstance(value, str) else repr(value)}" for key, value in fields.items())
    return "\n".join(filter(None, (f"{time.strftime('%H:%M:%S')} {name} {event:<30} {' '.join(values)}", trace)))


_writers: list[Writer] = [write]


@contextmanager
def written_by(writer: Writer) -> Iterator[None]:
    """Passes events to a writer instead of standard error."""
    _writers.append(writer)
    try:
        yield
    finally:
        _writers.remove(writer)
