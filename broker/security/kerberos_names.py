"""sasl.kerberos.principal.to.local.rules: derives the name of a client from its Kerberos principal.

Source: org.apache.kafka.common.security.kerberos.KerberosShortNamer, KerberosRule, KerberosName. Patterns have Java's
syntax. Python's syntax is the same for usual patterns; any other pattern is rejected at the start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from broker.security.java_patterns import java_pattern
from protocol.config import ConfigError
from protocol.numbers import longest_number, whole_number
from protocol.sasl.exchange import SaslError

OPTION: Final = "sasl.kerberos.principal.to.local.rules"
DEFAULT: Final = "DEFAULT"
PRINCIPAL: Final = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
RULE: Final = re.compile(
    r"RULE:\[(?P<count>[0-9]+):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<from>[^/]*)/(?P<to>[^/]*)/(?P<all>g)?)?/?(?P<case>[LU])?"
)
PARAMETER: Final = re.compile(r"\$([0-9]*)")
REFERENCE: Final = re.compile(r"\\(.?)|\$(?:\{([A-Za-z][A-Za-z0-9]*)\}|([0-9]*))", re.DOTALL)
CASES: Final[dict[str | None, Callable[[str], str]]] = {"L": str.lower, "U": str.upper, None: str}


class Substitution(NamedTuple):
    """The substitution s/from/to/, or s/from/to/g."""

    pattern: re.Pattern[str]
    replacement: str
    is_global: bool

    def apply(self, text: str) -> str:
        """Returns the text after the substitution. Raises SaslError for a reference to a missing group, which Java also
        finds only here."""
        return self.pattern.sub(partial(_replaced, self.replacement), text, count=0 if self.is_global else 1)


class LocalRule(NamedTuple):
    """A rule for principals with `part_count` parts."""

    part_count: int
    format: str
    match: re.Pattern[str] | None
    substitution: Substitution | None
    case: str | None

    def apply(self, parts: Sequence[str]) -> str | None:
        """Returns the name of a principal, whose realm comes before its parts; None if the rule doesn't match. Raises
        SaslError."""
        if len(parts) - 1 != self.part_count:
            return None
        name = PARAMETER.sub(partial(_part, parts), self.format)
        if self.match is not None and not self.match.fullmatch(name):
            return None
        if self.substitution is not None:
            name = self.substitution.apply(name)
        return CASES[self.case](_simple(name))


class LocalNames:
    """The rules of a listener, in order."""

    def __init__(self, rules: Sequence[str], default_realm: str) -> None:
        """Parses the rules. Raises ConfigError."""
        self._default_realm = default_realm
        self._rules = [None if rule == DEFAULT else _rule(rule) for rule in rules]

    def name(self, principal: str) -> str:
        """Returns the user name of a principal. Raises SaslError if no rule matches, or if the principal has characters
        that must be escaped, because it could be confused with another principal.
        """
        match = PRINCIPAL.fullmatch(principal)
        if match is None or "\\" in principal or not principal.isprintable():
            raise SaslError(f"{principal[:200]!r} is not a principal such as user@REALM or user/host@REALM")
        primary, host, realm = match.groups()
        parts = (realm, primary) if host is None else (realm, primary, host)
        for rule in self._rules:
            name = self._by_default(primary, realm) if rule is None else rule.apply(parts)
            if name is not None:
                return name
        raise SaslError(f"{OPTION}: no rule matches {principal[:200]!r}")

    def _by_default(self, primary: str, realm: str) -> str | None:
        return _simple(primary) if realm == self._default_realm else None


def _part(parts: Sequence[str], parameter: re.Match[str]) -> str:
    """Returns the text for $n: 0 is the realm."""
    number = whole_number(parameter[1])
    if number is None or number >= len(parts):
        raise SaslError(f"{OPTION}: {parameter[0]} is outside of the valid range 0 to {len(parts) - 1}")
    return parts[number]


def _simple(name: str) -> str:
    if not name or "/" in name or "@" in name:
        raise SaslError(f"{OPTION}: the name {name[:200]!r} is empty, or has a / or @")
    return name


def _replaced(replacement: str, match: re.Match[str]) -> str:
    """Returns the replacement of a match, as java.util.regex.Matcher.appendReplacement does."""
    return REFERENCE.sub(partial(_referred, match), replacement)


def _referred(match: re.Match[str], reference: re.Match[str]) -> str:
    """Returns the text for a part of a replacement: \\x stands for x, ${name} and $1 for groups. After $, the longest
    sequence of digits that is the number of a group counts."""
    escaped, name, digits = reference.groups()
    if escaped:
        return escaped
    if name in match.re.groupindex:
        return match[name] or ""
    if not digits:
        raise SaslError(f"{OPTION}: {reference[0]} refers to no group of {match.re.pattern!r}")
    number, size = longest_number(digits, match.re.groups)
    if not size:
        raise SaslError(f"{OPTION}: {reference[0]} refers to no group of {match.re.pattern!r}")
    return (match[number] or "") + digits[size:]


def _rule(text: str) -> LocalRule:
    match = RULE.fullmatch(text)
    count = None if match is None else whole_number(match["count"])
    if match is None or count is None:
        raise ConfigError(f"{OPTION}: Invalid rule: {text}", name=OPTION)
    whole = None if match["match"] is None else java_pattern(OPTION, text, match["match"])
    substitution = None
    if match["from"] is not None:
        substitution = Substitution(java_pattern(OPTION, text, match["from"]), match["to"], bool(match["all"]))
    return LocalRule(count, match["format"], whole, substitution, match["case"])
