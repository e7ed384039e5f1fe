"""The content of a row of docs/limits.md."""

from __future__ import annotations

from typing import NamedTuple


class Limit(NamedTuple):
    """A row of the page."""

    what: str
    """that a peer controls"""
    bound: str
    """in words; the number is that of `held_by`"""
    held_by: tuple[str, ...]
    """options by name, constants by module and name; none where the protocol's own types are the bound"""
    beyond: str
    """what a peer gets that goes beyond it"""
    tests: tuple[str, ...]
    """path::name"""
