"""Collects the log lines of brokers in a simulation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.log_lines import Line, log_lines
from tests.simulation.cluster.processes import PROCESS
from tests.simulation.cluster.surroundings import Surroundings


@contextmanager
def listened_to(world: Surroundings) -> Iterator[None]:
    """Adds log lines to the world's trace, and errors in them to its faults, unless a dead process logs them."""

    def take(line: Line) -> None:
        if line.level == "debug":
            return
        process, fields = PROCESS.get(), dict(line.fields)
        error = fields.pop("exc_info", None)
        world.history.note(process.host if process else "", line.event, *map(str, fields.values()))
        if isinstance(error, BaseException) and not (process is not None and process.is_dead):
            world.fault(error)

    with log_lines(take):
        yield
