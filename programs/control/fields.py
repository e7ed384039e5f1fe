"""The fields of a JSON object, or the arguments of a query, read one by one; whatever nobody reads is refused.

Each error names the field, its value and what would be right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from programs.control.http import RequestError

T = TypeVar("T")
MAX_NUMBER: Final = (1 << 63) - 1


class Fields:
    """The fields of one object. Methods return None for a field that is not there, and raise RequestError."""

    def __init__(self, values: Mapping[str, object], *, is_query: bool = False) -> None:
        """The values of a query are texts, whatever they stand for."""
        self._values = dict(values)
        self._is_query = is_query
        self._names: dict[str, None] = {}
        """The fields that were looked for."""

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
        """Returns a text that must be there."""
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
        """Returns a text that is one of a few."""
        text = self.text(name)
        if text is not None and text not in choices:
            raise RequestError(400, f"{name} {text!r} is unknown{suggestion(text, choices)}")
        return text

    def items(self, name: str) -> list[object]:
        """Returns the items of a list, or the one value that stands for a list of it."""
        value = self._take(name)
        if value is None:
            return []
        return list(value) if isinstance(value, list) else [value]

    def each_of(self, name: str, read: Callable[[object], T]) -> list[T]:
        """Returns what `read` makes of each item of a list."""
        return [read(item) for item in self.items(name)]

    def objects(self, name: str) -> list[Fields]:
        """Returns the objects of a list."""
        return self.each_of(name, lambda item: self._object(name, item))

    def _object(self, name: str, item: object) -> Fields:
        if not isinstance(item, dict):
            raise self.wrong(name, item, "a list of objects")
        return Fields(item)

    def wrong(self, name: str, value: object, right: str) -> RequestError:
        """Returns the error for a value that a field cannot have."""
        return RequestError(400, f"{name} is {value!r}, not {right}")

    def end(self) -> None:
        """Raises RequestError where there is a field that nobody has looked for."""
        for name in self._values:
            raise RequestError(400, f"{name!r} is no field here{suggestion(name, self._names)}")


def suggestion(text: str, choices: Iterable[str]) -> str:
    """Returns the rest of a sentence that names what may have been meant, else what there is."""
    from difflib import get_close_matches

    names = list(choices)
    lowered = {name.lower(): name for name in names}
    near = get_close_matches(text.lower(), lowered, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {lowered[near[0]]}?"
    return f"; there are {', '.join(names)}" if 0 < len(names) <= 30 else ""
