"""Checks that the heartbeats of consumer groups and share groups share. Source: GroupCoordinatorService."""

from __future__ import annotations

from protocol.errors import ErrorCode, KafkaError


def require(condition: bool, message: str) -> None:
    """Raises INVALID_REQUEST unless the condition holds."""
    if not condition:
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def not_empty(value: str | None, name: str) -> None:
    """Raises INVALID_REQUEST for a blank value."""
    require(value is None or not is_blank(value), f"{name} can't be empty.")


def is_blank(value: str) -> bool:
    """True if the text is empty after Java's String.trim, which removes all control characters, and of the spaces only
    U+0020."""
    return all(letter <= " " for letter in value)
