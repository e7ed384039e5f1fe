"""Parses the parts of docs/cluster.md that can be run: files of options, and commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cluster.md"


class Command(NamedTuple):
    """A line that begins with `$`, and the host in its prompt, if the prompt names one."""

    host: str
    words: list[str]


def section(title: str) -> str:
    """Returns the text under a heading, up to the next heading."""
    match = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert match, f"no section {title}"
    return match[1]


def file_of(text: str, name: str) -> str:
    """Returns the content of the file that begins with a comment of its name."""
    match = re.search(rf"^    # \S*{re.escape(name)}.*\n((?:    .+\n)+)", text, re.MULTILINE)
    assert match, f"no file {name}"
    return re.sub(r"^    ", "", match[1], flags=re.MULTILINE)


def commands(text: str) -> list[Command]:
    """Returns the commands in a text, in order."""
    lines = re.findall(r"^    ([\w.-]*)\$ (.+)$", text, re.MULTILINE)
    return [Command(host, line.split()) for host, line in lines]
