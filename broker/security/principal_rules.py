"""ssl.principal.mapping.rules: maps the subject of a certificate to the name of a principal.

Source: org.apache.kafka.common.security.ssl.SslPrincipalMapper. Patterns have Java's syntax. Python's syntax is the
same for usual patterns; any other pattern is rejected at the start.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from broker.security.java_patterns import java_pattern
from protocol.config import ConfigError
from protocol.numbers import longest_number

NAME: Final = "ssl.principal.mapping.rules"
DEFAULT: Final = "DEFAULT"
SPLIT: Final = re.compile(r"\s*(?:RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)|DEFAULT)\s*(?:,|$)", re.DOTALL)
REFERENCE: Final = re.compile(r"\\(.)|\$(\d+)|\$\{([^}]*)\}", re.DOTALL)
CASES: Final[dict[str, Callable[[str], str]]] = {"L": str.lower, "U": str.upper, "": str}


class Rule(NamedTuple):
    """A pattern for the whole subject, and its replacement."""

    pattern: re.Pattern[str]
    replacement: str
    case: str

    def apply(self, subject: str) -> str | None:
        """Returns the name; None if the rule doesn't match the subject.

        As in Java, the pattern must match the whole subject; then each of its matches in the subject is replaced,
        including an empty match at the end. So the lazy `(.*?)(,.*)?` first matches as little as possible.
        """
        if self.pattern.fullmatch(subject) is None:
            return None
        return CASES[self.case](self.pattern.sub(self._replaced, subject))

    def _replaced(self, match: re.Match[str]) -> str:
        return REFERENCE.sub(partial(_referred, match), self.replacement)


class PrincipalRules:
    """The rules of a listener, in order."""

    def __init__(self, text: str) -> None:
        """Parses the rules. Raises ConfigError."""
        self._rules = tuple(_rules(text.strip() or DEFAULT))

    def name(self, subject: str) -> str | None:
        """Returns the name of a subject; None if no rule matches."""
        for rule in self._rules:
            name = subject if rule is None else rule.apply(subject)
            if name is not None:
                return name
        return None


def _rules(text: str) -> list[Rule | None]:
    rules: list[Rule | None] = []
    position = 0
    while position < len(text):
        match = SPLIT.match(text, position)
        if match is None:
            raise ConfigError(f"{NAME}: {text[position:]!r} is not RULE:pattern/replacement/[LU] or DEFAULT", name=NAME)
        rules.append(None if match[1] is None else _rule(match))
        position = match.end()
    return rules


def _rule(match: re.Match[str]) -> Rule:
    pattern = java_pattern(NAME, match[1], match[1])
    for reference in REFERENCE.finditer(match[2]):
        if reference[3] is not None and reference[3] not in pattern.groupindex:
            raise ConfigError(f"{NAME}: {reference[0]} refers to no group of {match[1]!r}", name=NAME)
    return Rule(pattern, match[2], match[3])


def _referred(match: re.Match[str], reference: re.Match[str]) -> str:
    """Returns the text for a part of a replacement: \\x stands for x, ${name} and $1 for groups. After $, the longest
    sequence of digits that is the number of a group counts."""
    if reference[1] is not None:
        return reference[1]
    if reference[3] is not None:
        return match[reference[3]] or ""
    digits, groups = reference[2], match.re.groups
    if not groups:
        return "$" + digits if digits[0] != "0" else match[0] + digits[1:]
    number, size = longest_number(digits, groups)
    return (match[number] or "") + digits[size:] if size else reference[0]
