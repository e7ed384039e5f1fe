"""Reads the fields of a JSON object, or the arguments of a query, one by one; fields that were not read are rejected.
Each error names the field, its value and the expected value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Final, TypeVar

from programs.control.http import RequestError

T = TypeVar("T")
MAX_NUMBER: Final = (1 << 63) - 1


class Fields:
    """The fields of one object. Methods return None for a missing field, and raise RequestError."""

    def __init__(self, values: Mapping[str, object], *, is_query: bool = False) -> None:
        """All values of a query are strings."""
        self._values = dict(values)
        self._is_query = is_query
        self._names: dict[str, None] = {}
        """The fields that were requested."""

    def __contains__(self, name: str) -> bool:
        self._names[name] = None
        return name in self._values

    def _take(self, name: str) -> object:
        self._names[name] = None
        return self._values.pop(name, None)

    def text(self, name: str) -> str | None:
        value = self._take(name)
        if value is not None and not isinstance(value, str):
            raise self.wrong(name, value, "a text")
        return value

    def needed_text(self, name: str) -> str:
        """Returns a required text."""
        text = self.text(name)
        if not text:
            raise RequestError(400, f"{name} is missing")
        return text

    def number(self, name: str, *, at_least: int = 0, at_most: int = MAX_NUMBER) -> int | None:
        value = self._take(name)
        if value is None:
            return None
        number = value
        if self._is_query and isinstance(value, str) and value.removeprefix("-").isdecimal() and value.isascii():
            number = int(value)
        if isinstance(number, bool) or not isinstance(number, int) or not at_least <= number <= at_most:
            upper = "" if at_most == MAX_NUMBER else f" to {at_most}"
            raise self.wrong(name, value, f"a whole number from {at_least}{upper}{'' if upper else ' on'}")
        return number

    def flag(self, name: str) -> bool | None:
        value = self._take(name)
        if self._is_query and value in ("true", "false"):
            return value == "true"
        if value is not None and not isinstance(value, bool):
            raise self.wrong(name, value, "true or false")
        return value

    def choice(self, name: str, choices: Iterable[str]) -> str | None:
        """Returns a text that must be one of `choices`."""
        text = self.text(name)
        if text is not None and text not in choices:
            raise RequestError(400, f"{name} {text!r} is unknown{suggestion(text, choices)}")
        return text

    def items(self, name: str) -> list[object]:
        """Returns the items of a list; a single value counts as a list with one item."""
        value = self._take(name)
        if value is None:
            return []
        return list(value) if isinstance(value, list) else [value]

    def each_of(self, name: str, read: Callable[[object], T]) -> list[T]:
        """Returns the result of `read` for each item of a list."""
        return [read(item) for item in self.items(name)]

    def objects(self, name: str) -> list[Fields]:
        """Returns the objects of a list."""
        return self.each_of(name, lambda item: self._object(name, item))

    def _object(self, name: str, item: object) -> Fields:
        if not isinstance(item, dict):
            raise self.wrong(name, item, "a list of objects")
        return Fields(item)

    def wrong(self, name: str, value: object, right: str) -> RequestError:
        """Returns the error for a wrong value of a field."""
        return RequestError(400, f"{name} is {value!r}, not {right}")

    def end(self) -> None:
        """Raises RequestError if a field was not requested."""
        for name in self._values:
            raise RequestError(400, f"{name!r} is an unknown field{suggestion(name, self._names)}")


def suggestion(text: str, choices: Iterable[str]) -> str:
    """Returns the end of a sentence that names the most similar choice, or else the choices."""
    names = list(choices)
    lowered = {name.lower(): name for name in names}
    near = get_close_matches(text.lower(), lowered, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {lowered[near[0]]}?"
    return f"; expected one of {', '.join(names)}" if 0 < len(names) <= 30 else ""
