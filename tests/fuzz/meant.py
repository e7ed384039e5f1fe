"""The differences from Apache Kafka that are meant, beyond those of the conformance tests, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.fuzz.twins import CLOSED, NO_ANSWER, ORDER, Answers
from tests.interop.conformance.compare import Allowed, Difference
from tests.interop.conformance.meant import AT_ONCE, MEANT

UNKNOWN_SERVER_ERROR, REQUEST_TIMED_OUT = -1, 7
FAILURES: Final = frozenset({UNKNOWN_SERVER_ERROR, REQUEST_TIMED_OUT})
"""Apache Kafka's own failures: an error that it did not foresee, and a controller that it gave no time to answer (it
does what was asked all the same)."""

ANYTHING: Final = r".*"

MEANT_HERE: Final[tuple[Allowed, ...]] = (
    Allowed(r"MetadataRequest .*\.topics\[\d+\]\.error_code", AT_ONCE, theirs=3),
    Allowed(r"MetadataRequest .*\.topics\[\d+\]\.partitions", AT_ONCE, theirs=[]),
    Allowed(r"MetadataRequest .*\.topics\[\d+\]\.topic_id", AT_ONCE, ours="some id", theirs="none"),
    Allowed(
        r".*\.(acknowledge_)?error_message",
        "what an error code means is told in the project's own words, also where Kafka has none; the conformance tests "
        "compare the texts that people read",
        where_so=lambda ours, theirs: isinstance(ours, str),
    ),
    Allowed(
        r"(Create|Delete|Describe)AclsRequest .*",
        "Kafka cannot read an ACL of types that it does not know, and closes the connection; without an authorizer "
        "every such request is refused here by its error",
        theirs=CLOSED,
    ),
)


def is_meant(difference: Difference, answers: Answers) -> bool:
    """Whether a reason covers the difference, or all of the answers that it is in."""
    if answers.theirs == NO_ANSWER or has_failed(answers.theirs):
        return True
    if not isinstance(answers.ours, str) and merged(answers.ours) == merged(answers.theirs):
        return True
    return any(allowed.covers(difference) for allowed in (*MEANT, *MEANT_HERE))


def has_failed(answer: Any) -> bool:
    """Whether an answer has an error that its broker did not foresee."""
    return not FAILURES.isdisjoint(error_codes(answer))


def error_codes(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        for name, item in value.items():
            if name.endswith("error_code") and isinstance(item, int):
                yield item
            else:
                yield from error_codes(item)
    elif isinstance(value, list):
        for item in value:
            yield from error_codes(item)


def merged(value: Any) -> Any:
    """An answer as a map has it: what a request names twice is there once, what it names without a part is not. Apache
    Kafka gathers some requests in maps and walks through others; which one it does is no promise to anybody."""
    if isinstance(value, dict):
        return {name: merged(item) for name, item in value.items() if not name.endswith("error_message")}
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return value
    by_name: dict[str, dict[str, Any]] = {}
    for item in value:
        parts = [name for name, inner in item.items() if isinstance(inner, list)]
        if parts and not any(item[name] for name in parts):
            continue
        about = str([item.get(name) for name in ORDER])
        if about in by_name and parts:
            for name in parts:
                by_name[about][name] = [*by_name[about][name], *item[name]]
        else:
            by_name[about] = dict(item)
    return [merged(by_name[about]) for about in sorted(by_name)]
