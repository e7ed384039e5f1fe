"""Parses the how-to pages: commands with a prompt, and files that begin with a comment of their name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from tests.sources import ROOT

PAGES = ("start", "production", "upgrade", "backup", "ci")
SETTINGS = (
    "quotas", "dead-letter-queue", "share-redelivery-backoff", "share-delayed-delivery", "share-ordering-by-key",
)  # fmt: skip
"""Pages that begin with commands of `odradek` for a broker that runs, which set what the page is about."""


class Step(NamedTuple):
    """A command, and the host in its prompt, if the prompt names one."""

    host: str
    command: str


def text_of(page: str, title: str = "") -> str:
    """Returns a page, or the text under one of its headings."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    if not title:
        return text
    match = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert match, f"{page}.md has no section {title}"
    return match[1]


def steps(text: str) -> list[Step]:
    """Returns the commands of a text, in order."""
    return [Step(host, command) for host, command in re.findall(r"^ {4,}([\w.-]*)\$ (.+)$", text, re.MULTILINE)]


def files(text: str) -> dict[str, str]:
    """Returns the files of options in a text by name."""
    found = re.findall(r"^    # ([\w.-]+\.properties)\n((?:    .+\n)+)", text, re.MULTILINE)
    return {name: re.sub(r"^    ", "", lines, flags=re.MULTILINE) for name, lines in found}


def write(folder: Path, name: str, text: str) -> None:
    """Writes a file that only its user may read."""
    path = folder / name
    path.touch(0o600)
    path.write_text(text)
