"""Ranges of versions of messages and of their fields."""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

ANY_VERSION: Final = 0x7FFF
"""The open end of "3+": versions are int16."""


class Versions(NamedTuple):
    """A closed range of versions, which is empty if `first > last`."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __str__(self) -> str:
        return "none" if self.first > self.last else f"{self.first}-{self.last}"


NONE = Versions(1, 0)


@cache
def parse_versions(text: str | None) -> Versions:
    """Parses "0-4", "3+", "2" or "none", as Kafka's schemas spell ranges."""
    if text is None or text == "none":
        return NONE
    if text.endswith("+"):
        return Versions(int(text[:-1]), ANY_VERSION)
    first, _, last = text.partition("-")
    return Versions(int(first), int(last or first))
