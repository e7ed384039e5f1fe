"""Regular expressions of subscriptions: RE2, whose time is linear in the text, whatever pattern a client sends.

Source: Kafka's TopicRegexResolver (KIP-848), which uses RE2/J. A pattern matches a topic's whole name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from protocol.errors import ErrorCode, KafkaError
from protocol.lazy import lazy

if TYPE_CHECKING:
    import re2
else:  # with the first pattern: it takes three megabytes
    re2 = lazy("re2")

MAX_MEMORY_BYTES: Final = 1 << 20
"""The memory that a compiled pattern may take, including the automaton that grows while it matches."""


COSTLY_PARTS: Final = ("\\p", "\\P", "{")
MAX_COSTLY_PARTS: Final = 100
"""Each Unicode class or counted repetition takes RE2 0.2 ms before it finds that a pattern is too large, and a pattern
is checked while its client waits: 100 of them take 20 ms. Topic names are ASCII, so few patterns need even one."""


class InvalidPattern(ValueError):
    """The error of a pattern that is not RE2's syntax, or would take too long to compile."""


class Pattern(Protocol):
    """A compiled pattern."""

    def fullmatch(self, text: str) -> object | None: ...


class Resolved(NamedTuple):
    """The topics that a pattern matched, at a version of the metadata and a time."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


UNRESOLVED: Final = Resolved(frozenset(), -1, -1)


def check(pattern: str) -> None:
    """Raises INVALID_REGULAR_EXPRESSION, with the reason."""
    try:
        compiled(pattern)
    except InvalidPattern as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {error}.",
        ) from None


def compiled(pattern: str) -> Pattern:
    """Returns the pattern, ready to match. Raises InvalidPattern."""
    if sum(map(pattern.count, COSTLY_PARTS)) > MAX_COSTLY_PARTS:
        raise InvalidPattern(f"it has more than {MAX_COSTLY_PARTS} Unicode classes and counted repetitions")
    options = re2.Options()
    options.max_mem = MAX_MEMORY_BYTES
    options.log_errors = False
    options.never_capture = True  # groups are not needed, and cost time for every character
    try:
        return cast(Pattern, re2.compile(pattern, options))  # re2 has no types
    except re2.error as error:
        reason = error.args[0]
        raise InvalidPattern(reason.decode(errors="replace") if isinstance(reason, bytes) else reason) from None


def match_all(patterns: Iterable[str], topic_names: Sequence[str]) -> Mapping[str, frozenset[str]]:
    """Returns the names that each pattern matches; a pattern that doesn't compile matches none. It takes a while: call
    it from a worker thread."""
    return {pattern: _matches(pattern, topic_names) for pattern in patterns}


def _matches(pattern: str, topic_names: Sequence[str]) -> frozenset[str]:
    try:
        fullmatch = compiled(pattern).fullmatch
    except InvalidPattern:
        return frozenset()
    return frozenset(name for name in topic_names if fullmatch(name))
