"""Collects the log lines of brokers in a simulation."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from broker.logging import Logger
from tests.simulation.cluster.processes import PROCESS
from tests.simulation.cluster.surroundings import Surroundings


class Lines:
    """The log lines of brokers, which belong to the trace; bugs of a broker are breaches."""

    def __init__(self, world: Surroundings) -> None:
        self._world = world

    def debug(self, event: str, **fields: object) -> None: ...

    def info(self, event: str, **fields: object) -> None:
        process = PROCESS.get()
        self._world.history.note(process.host if process else "", event, *map(str, fields.values()))

    warning = info

    def error(self, event: str, exc_info: BaseException | None = None, **fields: object) -> None:
        self.info(event, **fields)
        process = PROCESS.get()
        if exc_info is not None and not (process is not None and process.is_dead):
            self._world.fault(exc_info)

    critical = error

    def exception(self, event: str, **fields: object) -> None:
        self.error(event, exc_info=sys.exc_info()[1], **fields)


@contextmanager
def listened_to(world: Surroundings) -> Iterator[None]:
    """Passes log lines to the world during the block."""
    logger, lines = Logger._logger, Lines(world)
    Logger._logger = lambda _: lines  # type: ignore[method-assign, assignment, return-value]
    try:
        yield
    finally:
        Logger._logger = logger  # type: ignore[method-assign]
