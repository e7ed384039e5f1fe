"""Checks that the heartbeats of consumer groups and share groups share. Source: GroupCoordinatorService."""

from __future__ import annotations

from collections.abc import Sized
from typing import Final

from protocol.errors import ErrorCode, KafkaError

MAX_TOPIC_NAMES: Final = 20_000
"""Maximum number of topics to which the members of a consumer group or share group subscribe by name. A decision on a
member goes over all of them in one turn of the event loop, and takes 3 to 4 microseconds for each."""

TRIMMED: Final = "".join(map(chr, range(ord(" ") + 1)))


def require(condition: bool, message: str) -> None:
    """Raises INVALID_REQUEST unless the condition holds."""
    if not condition:
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def not_empty(value: str | None, name: str) -> None:
    """Raises INVALID_REQUEST for a blank value."""
    require(value is None or not is_blank(value), f"{name} can't be empty.")


def check_topic_names(names: Sized | None) -> None:
    """Raises INVALID_REQUEST if a member, or all members of a group, name more topics than MAX_TOPIC_NAMES."""
    count = 0 if names is None else len(names)
    require(
        count <= MAX_TOPIC_NAMES,
        f"The members of a group can subscribe to at most {MAX_TOPIC_NAMES:,} topics by name, not to {count:,}.",
    )


def is_blank(value: str) -> bool:
    """True if the text is empty after Java's String.trim, which removes all control characters, and of the spaces only
    U+0020."""
    return not value.strip(TRIMMED)
