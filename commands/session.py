"""The parameters of an action, its confirmation and its results."""

from __future__ import annotations

import argparse
import fnmatch
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from cli.exits import DONE, FAILED
from cli.flags import PATTERN, TOPICS_HELP
from commands.client.cluster_client import ClusterClient
from commands.errors import CommandError, misuse
from commands.printing import Output, Row
from commands.records.positions import Position, parse_position

GLOB: Final = re.compile(r"[*?\[]")
"""A character that makes a word a glob; the name of a topic can't have it."""


class Session(NamedTuple):
    """The parameters of an action: the cluster, the output and the options."""

    cluster: ClusterClient
    output: Output
    options: argparse.Namespace

    def confirm(self, typed: Sequence[str], what: str) -> None:
        """Asks the user to type the names of the things to be destroyed, unless --yes was given. Raises CommandError if
        other names are typed."""
        if self.options.yes:
            return
        names = " ".join(typed)
        if not sys.stdin.isatty():
            raise misuse(f"{what} {names} cannot be undone: without a terminal --yes is required")
        sys.stderr.write(f"{what} {names} cannot be undone. Type the name to continue: ")
        sys.stderr.flush()
        if sys.stdin.readline().split() != list(typed):
            raise CommandError("aborted: the name does not match")

    def position(self, option: str, text: str) -> Position:
        """Returns the position that an option names. Raises CommandError."""
        try:
            return parse_position(text, self.cluster.clock.now_ms())
        except ValueError as error:
            raise misuse(f"{option}: {error}") from None

    def results(self, columns: Sequence[str], rows: Sequence[Row]) -> int:
        """Prints the results, a row for each thing. Returns the exit code: FAILED if a row has an `error`."""
        shown = rows if self.output.is_json else [{**row, "result": _result(row)} for row in rows]
        self.output.rows([*columns, "result"], shown)
        return DONE if not any(row.get("error") for row in rows) else FAILED


def _result(row: Row) -> str:
    return str(row.get("error") or row.get("result") or "done")


def add_topics(parser: argparse.ArgumentParser) -> None:
    """Adds a list of topics, by names, globs or a regular expression."""
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=TOPICS_HELP)
    PATTERN.add(parser)


async def chosen_topics(session: Session, *, is_optional: bool = False) -> list[str]:
    """Returns the names of the topics that `add_topics` chose, in order. Internal topics match only what begins with
    "__". Raises CommandError if nothing is chosen (unless it is optional: then it returns none), or a glob or the
    pattern matches no topic."""
    options = session.options
    if not options.topics and options.pattern is None:
        if is_optional:
            return []
        raise misuse("TOPIC is missing: name topics, or choose them with --pattern REGEX")
    wishes: dict[str, re.Pattern[str]] = {}
    for word in options.topics:
        wishes[word] = re.compile(fnmatch.translate(word) if GLOB.search(word) else re.escape(word) + r"\Z")
    if options.pattern is not None:
        try:
            wishes[options.pattern] = re.compile(rf"(?:{options.pattern})\Z")
        except re.error as error:
            raise misuse(f"--pattern {options.pattern}: {error}") from None
    if options.pattern is None and not any(map(GLOB.search, options.topics)):
        return list(dict.fromkeys(options.topics))
    existing = sorted(topic.name or "" for topic in (await session.cluster.metadata(None)).topics)
    chosen: dict[str, None] = {}
    for text, pattern in wishes.items():
        matching = [
            name for name in existing if pattern.match(name) and (text.startswith("__") or not name.startswith("__"))
        ]
        if not matching:
            raise CommandError(f"no topic matches {text}: `odradek topic list` lists them")
        chosen |= dict.fromkeys(matching)
    return list(chosen)


Action: TypeAlias = Callable[[Session], Awaitable["int | None"]]
"""Carries out a command. Returns the exit code; None means DONE."""


def assignments(words: Sequence[str], option: str) -> Mapping[str, str]:
    """Returns NAME=VALUE words as a mapping. Raises CommandError, which names the option."""
    table: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise misuse(f"{option} {word}: expected NAME=VALUE, such as retention.ms=3600000")
        table[name] = value
    return table
