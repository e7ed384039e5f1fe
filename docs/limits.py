"""Writes docs/limits.md from the sections of docs/limits_table.py: `python -m docs.limits`.

The numbers come from the options and constants themselves; tests/docs/test_limits.py checks that the named tests exist.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from broker.config import BrokerConfig
from coordinator.group.config import GroupConfig
from coordinator.telemetry.config import ClientMetricsConfig
from docs.limit import Limit
from docs.limits_table import SECTIONS
from protocol.config import Config
from storage.config import LogConfig

PAGE = Path(__file__).with_suffix(".md")
KINDS: Sequence[type[Config]] = (BrokerConfig, GroupConfig, LogConfig, ClientMetricsConfig)
KIB, MIB = 1024, 1024 * 1024
UNBOUNDED = (2**31 - 1, 2**63 - 1, -1)

INTRODUCTION = """\
# Limits

<!-- Written by `python -m docs.limits` from docs/limits_*.py, the options and the constants; edit those. -->

The limits on what a client or another broker can request, and what happens beyond each limit. A bound that is an option
is shown with its default; other bounds are constants, whose source states the reason.
[untrusted-networks.md](untrusted-networks.md) has the options to set if untrusted clients can connect.
"""


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


def page() -> str:
    """Returns the whole page."""
    return "\n".join([INTRODUCTION, *(line for title, limits in SECTIONS.items() for line in section(title, limits))])


def section(title: str, limits: Sequence[Limit]) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| limited value | bound | held by | beyond it | test |"
    yield "| --- | --- | --- | --- | --- |"
    for limit in limits:
        held_by = "<br>".join(shown(bound(source)) for source in limit.held_by) or "the protocol"
        tests = "<br>".join(f"`{test}`" for test in limit.tests)
        yield f"| {limit.what} | {limit.bound} | {held_by} | {limit.beyond} | {tests} |"
    yield ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
