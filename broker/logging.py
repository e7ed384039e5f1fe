"""Structured logs on standard error: readable lines on a terminal, otherwise one JSON object per line.

Importing structlog takes 20 ms of CPU time, a fifteenth of the time that a start may take. So the first logged line
imports it, and a start that logs nothing doesn't need it. Nothing is logged per request.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Final, TextIO

from protocol.lazy import lazy

if TYPE_CHECKING:
    import structlog
    from structlog.typing import FilteringBoundLogger, Processor
else:  # with the first line
    structlog = lazy("structlog")

TRACE, DEBUG, INFO, WARN, ERROR, FATAL = 5, 10, 20, 30, 40, 50
"""Levels, by the standard library's numbers."""

LEVELS: Final = {"TRACE": TRACE, "DEBUG": DEBUG, "INFO": INFO, "WARN": WARN, "ERROR": ERROR, "FATAL": FATAL}
"""The names of levels in Kafka's tools (org.apache.kafka.clients.admin.LogLevelConfig)."""

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

    __slots__ = ("_bound", "_fields", "name")

    def __init__(self, name: str, fields: dict[str, object] | None = None) -> None:
        self.name = name
        self._fields = fields or {}
        self._bound: FilteringBoundLogger | None = None

    def bind(self, **fields: object) -> Logger:
        """Returns a logger that adds these fields to every event."""
        return Logger(self.name, {**self._fields, **fields})

    def is_enabled_for(self, level: int) -> bool:
        """True if events of this level are logged."""
        return levels.of(self.name) <= level

    def debug(self, event: str, **fields: object) -> None:
        """Logs an event for developers of the broker; hidden unless its level is set."""
        if levels.of(self.name) <= DEBUG:
            self._logger().debug(event, **fields)

    def info(self, event: str, **fields: object) -> None:
        """Logs an event that an operator wants to find later."""
        if levels.of(self.name) <= INFO:
            self._logger().info(event, **fields)

    def warning(self, event: str, **fields: object) -> None:
        """Logs an event that an operator may want to act on."""
        if levels.of(self.name) <= WARN:
            self._logger().warning(event, **fields)

    def error(self, event: str, **fields: object) -> None:
        """Logs an event that an operator must look at."""
        if levels.of(self.name) <= ERROR:
            self._logger().error(event, **fields)

    def critical(self, event: str, **fields: object) -> None:
        """Logs the reason why the broker can't continue."""
        if levels.of(self.name) <= FATAL:
            self._logger().critical(event, **fields)

    def exception(self, event: str, **fields: object) -> None:
        """Logs an error with the traceback of the current exception: a bug of the broker."""
        if levels.of(self.name) <= ERROR:
            self._logger().exception(event, **fields)

    def _logger(self) -> FilteringBoundLogger:
        if self._bound is None:
            self._bound = _bound_logger(self.name, self._fields)
        return self._bound


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


def _bound_logger(name: str, fields: dict[str, object]) -> FilteringBoundLogger:
    configure(sys.stderr)
    bound: FilteringBoundLogger = structlog.get_logger().bind(logger=name, **fields)
    return bound


def configure(stream: TextIO) -> None:
    """Makes structlog write lines to a stream, unless it is already configured."""
    with _WithoutRich():
        is_configured = structlog.is_configured()  # imports it
    if not is_configured:
        structlog.configure(
            processors=_processors(stream.isatty()),
            wrapper_class=structlog.make_filtering_bound_logger(DEBUG),  # `levels` says what is logged
            logger_factory=structlog.WriteLoggerFactory(file=stream),
            cache_logger_on_first_use=True,
        )


def _processors(terminal: bool) -> list[Processor]:
    stamp = structlog.processors.TimeStamper(fmt="%H:%M:%S" if terminal else "iso", utc=not terminal)
    common: list[Processor] = [structlog.processors.add_log_level, stamp]
    if terminal:
        return [*common, structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
    return [*common, structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]


class _WithoutRich:
    """Hides rich from structlog, which would import it for tracebacks that are not used here; that would take 60 ms
    more.
    """

    def __enter__(self) -> None:
        self._block = "rich" not in sys.modules
        if self._block:
            sys.modules["rich"] = None  # type: ignore[assignment]  # the import system's way to say: not there

    def __exit__(self, *_: object) -> None:
        if self._block:
            del sys.modules["rich"]
