"""Writes the values of options and constants into the tables of docs/limits.md: `python -m docs.limits`.

The rows are edited in the page itself. tests/docs/test_limits.py checks that the named tests exist.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from broker.config import BrokerConfig
from coordinator.group.config import GroupConfig
from coordinator.telemetry.config import ClientMetricsConfig
from protocol.config import Config
from storage.config import LogConfig

PAGE = Path(__file__).with_suffix(".md")
KINDS: Sequence[type[Config]] = (BrokerConfig, GroupConfig, LogConfig, ClientMetricsConfig)
KIB, MIB = 1024, 1024 * 1024
UNBOUNDED = (2**31 - 1, 2**63 - 1, -1)
HEADING = "| limited value |"
QUOTED = re.compile(r"`([^`]+)`")


class Limit(NamedTuple):
    """A row of the page."""

    what: str
    """The value that a client or another broker controls."""
    bound: str
    """The bound in words; `held_by` has the number."""
    held_by: str
    """Options by name, constants by module and name, with their values; or the protocol, by its types."""
    beyond: str
    """The effect on a peer that exceeds the bound."""
    tests: str
    """Tests that show it, as path::name."""

    @property
    def sources(self) -> list[str]:
        return QUOTED.findall(self.held_by)


class Bound(NamedTuple):
    """The option or constant that holds a bound, and its value."""

    source: str
    value: object


def bound(source: str) -> Bound:
    """Returns the option's default, or the constant's value. Raises LookupError when there is neither."""
    for kind in KINDS:
        if source in kind.OPTIONS:
            return Bound(source, kind.OPTIONS[source].default)
    module, _, name = source.rpartition(".")
    try:
        return Bound(source, getattr(import_module(module), name))
    except (ImportError, AttributeError, ValueError) as error:
        raise LookupError(f"{source}: no such option, and no such constant") from error


def shown(held: Bound) -> str:
    """Returns the source of a bound and its value, with units for sizes and times."""
    value = held.value
    if isinstance(value, Collection):
        return f"`{held.source}`"
    if isinstance(value, bool) or not isinstance(value, int):
        return f"`{held.source}` = {str(value).lower()}"
    if value in UNBOUNDED:
        return f"`{held.source}` = {value} (none)"
    name = held.source.lower()
    if "bytes" in name and value >= KIB:
        return f"`{held.source}` = {f'{value // MIB} MiB' if value % MIB == 0 else f'{value / KIB:g} KiB'}"
    if name.endswith(".ms") and value >= 1_000:
        return f"`{held.source}` = {value / 1_000:g} s"
    return f"`{held.source}` = {value:,}"


def limit_of(line: str) -> Limit | None:
    """Returns the limit of a line of the page; None if the line is not a row."""
    if not line.startswith("| ") or line.startswith((HEADING, "| --- ")):
        return None
    return Limit(*line.removeprefix("| ").removesuffix(" |").split(" | "))


def limits() -> Iterator[Limit]:
    """Yields the rows of the page."""
    return filter(None, map(limit_of, PAGE.read_text(encoding="utf-8").splitlines()))


def page() -> str:
    """Returns the page with the current values."""
    return "".join(f"{_with_values(line)}\n" for line in PAGE.read_text(encoding="utf-8").splitlines())


def _with_values(line: str) -> str:
    limit = limit_of(line)
    if limit is None:
        return line
    held_by = "<br>".join(shown(bound(source)) for source in limit.sources) or "the protocol"
    return f"| {' | '.join(limit._replace(held_by=held_by))} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
