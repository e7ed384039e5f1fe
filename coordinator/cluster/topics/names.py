"""Names of topics: which are legal, which collide, which are internal (org.apache.kafka.common.internals.Topic)."""

from __future__ import annotations

from collections.abc import Container

from protocol.errors import ErrorCode, KafkaError

MAX_LENGTH = 249
"""With `-` and a partition's ten digits it still fits a file name of 255 bytes, nearly: Kafka's choice."""

LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")

METADATA_TOPIC = "__cluster_metadata"
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


def is_internal(name: str) -> bool:
    """Whether clients are told that the topic is Kafka's own."""
    return name in INTERNAL_TOPICS


def validate(name: str) -> None:
    """Raises KafkaError(INVALID_TOPIC_EXCEPTION) with what is wrong with the name."""
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


def has_collision_chars(name: str) -> bool:
    """Metric names make `.` and `_` the same, so topics that differ in nothing else collide."""
    return "." in name or "_" in name


def unified(name: str) -> str:
    """The name that all topics which collide with this one have in common."""
    return name.replace(".", "_")


class Everything(Container[str]):
    """Any name is in it: nothing is hidden from who asks."""

    def __contains__(self, name: object) -> bool:
        return True


EVERYTHING = Everything()
