"""Renders templates: escapes everything, and formats numbers, sizes and times."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from cli.times import show_time
from commands.printing import cell

FOLDER: Final = Path(__file__).parent
NOTHING: Final = "–"
UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
STEP: Final = 1024
VERSION_DIGITS: Final = 12

INVISIBLE: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Unicode categories of characters that are shown as escapes: control characters, and marks that turn the direction of
text around (UAX 9) or hide it."""

KEPT: Final = frozenset("\n\t")


def number(value: object) -> str:
    """Returns a number with thin groups of digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NOTHING if value is None else str(value)
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.1f}".removesuffix(".0")
    return text.replace(",", "\u202f")


def counted(amount: int, noun: str) -> str:
    """Returns a number with its noun, such as "1 broker" and "2 brokers"."""
    return f"{number(amount)} {noun}{'' if amount == 1 else 's'}"


def size(value: object) -> str:
    """Returns bytes in a unit that fits."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return NOTHING
    amount = float(value)
    for unit in UNITS:
        if abs(amount) < STEP or unit == UNITS[-1]:
            return f"{amount:.0f}\u202f{unit}" if unit == "B" or amount >= 100 else f"{amount:.1f}\u202f{unit}"
        amount /= STEP
    return NOTHING


def moment(value: object) -> str:
    """Returns a timestamp in milliseconds as a date and time in UTC."""
    shown = show_time(value) if isinstance(value, int) else None
    return NOTHING if shown is None else shown.replace("T", " ").removesuffix("Z")


def plain(value: object) -> str:
    """Returns a value as the text of a cell."""
    shown = cell(value)
    return NOTHING if shown == "-" else shown


def visible(text: str) -> str:
    """Returns text of a record with its invisible characters as escapes, so that they can't rearrange the page."""
    return "".join(
        character
        if character in KEPT or unicodedata.category(character) not in INVISIBLE
        else f"\\u{{{ord(character):x}}}"
        for character in text
    )


def address(path: str, **parameters: object) -> str:
    """Returns a URL of this server; leaves out empty parameters."""
    given = {name: value for name, value in parameters.items() if value not in (None, "", False)}
    return quote(path) + (f"?{urlencode(given, doseq=True)}" if given else "")


def data_lines(content: str) -> str:
    """Returns a text as the data of a server-sent event."""
    return "".join(f"data: {line}\n" for line in content.splitlines() or [""])


def event(name: str, content: str) -> str:
    """Returns a server-sent event."""
    return f"event: {name}\n{data_lines(content)}\n"


def static_version() -> str:
    """Returns a hash of all static files, which their URLs carry, so that browsers can keep them."""
    digest = sha256()
    for file in sorted((FOLDER / "static").rglob("*.*")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:VERSION_DIGITS]


def environment() -> Environment:
    """Returns the environment of all templates."""
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": number, "size": size, "moment": moment, "plain": plain, "visible": visible}
    made.globals |= {"address": address, "counted": counted, "version": static_version()}
    return made


class Templates:
    """The templates of the pages."""

    def __init__(self) -> None:
        self._environment = environment()

    def render(self, template: str, values: Mapping[str, object]) -> str:
        return self._environment.get_template(template).render(values)
