"""Names of topics: which are valid, which collide, and which are internal (org.apache.kafka.common.internals.Topic)."""

from __future__ import annotations

from collections.abc import Container

from protocol.errors import ErrorCode, KafkaError

MAX_LENGTH = 249
"""Kafka's limit: with `-` and a partition number, the name of a log directory stays within about 255 bytes."""

LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")

METADATA_TOPIC = "__cluster_metadata"
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


def is_internal(name: str) -> bool:
    """True if clients see the topic as internal."""
    return name in INTERNAL_TOPICS


def is_valid(name: str) -> bool:
    """True if a topic may have the name."""
    return _problem(name) is None


def validate(name: str) -> None:
    """Raises KafkaError(INVALID_TOPIC_EXCEPTION) if the name is invalid; the message has the reason."""
    problem = _problem(name)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")


def _problem(name: str) -> str | None:
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_LENGTH}"
    if not LEGAL.issuperset(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def absence(name: str) -> ErrorCode:
    """Returns INVALID_TOPIC_EXCEPTION for a name that no topic can have, UNKNOWN_TOPIC_OR_PARTITION for others."""
    return ErrorCode.INVALID_TOPIC_EXCEPTION if _problem(name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def has_collision_chars(name: str) -> bool:
    """True if the name has a character that can make it collide. In names of metrics, `.` becomes `_`."""
    return "." in name or "_" in name


def unified(name: str) -> str:
    """Returns the name in metrics, which is the same for all topics that collide with this topic."""
    return name.replace(".", "_")


class Everything(Container[str]):
    """A set that contains every name, for a client that may see everything."""

    def __contains__(self, name: object) -> bool:
        return True


EVERYTHING = Everything()
