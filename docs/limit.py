"""Rows of docs/limits.md."""

from __future__ import annotations

from typing import NamedTuple


class Limit(NamedTuple):
    """A row of the page."""

    what: str
    """The value that a client or another broker controls."""
    bound: str
    """The bound in words; `held_by` has the number."""
    held_by: tuple[str, ...]
    """Options by name, constants by module and name; empty if the types of the protocol are the bound."""
    beyond: str
    """The effect on a peer that exceeds the bound."""
    tests: tuple[str, ...]
    """Tests that show it, as path::name."""
