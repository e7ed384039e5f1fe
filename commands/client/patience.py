"""Time limits of group members: for a coordinator that doesn't answer, and for an assignment without partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from client.errors import RequestTimedOut
from commands.client.links import Moments
from commands.errors import BrokerUnreachable, CoordinatorAway

LOST: Final = (BrokerUnreachable, CoordinatorAway, RequestTimedOut)
"""Failures after which a member sends its request again: the coordinator moves, loads, or didn't answer in time. It may
have carried out a request that it didn't answer."""

GIVE_UP_MS: Final = 120_000
"""Time without an answer after which a member gives up. By then its session has expired on any coordinator: sessions
last 45 seconds by default, and a coordinator loads in less than the remaining time."""

EMPTY_HANDED_MS: Final = 10_000
"""Time without partitions after which the command tells the user why nothing is printed."""


class Patience:
    """The time for which a member has had no answer from its coordinator."""

    def __init__(self, clock: Moments) -> None:
        self._clock = clock
        self._since_ms: int | None = None

    def answered(self) -> None:
        self._since_ms = None

    def lost(self, error: Exception) -> None:
        """Counts a failure. Raises it if the coordinator hasn't answered for GIVE_UP_MS."""
        now_ms = self._clock.monotonic_ms()
        if self._since_ms is None:
            self._since_ms = now_ms
        elif now_ms - self._since_ms >= GIVE_UP_MS:
            raise error


class EmptyHanded:
    """Prints a note, once, when a member has had no partitions for EMPTY_HANDED_MS."""

    def __init__(self, clock: Moments, note: Callable[[str], None], group: str, command: str) -> None:
        """`command` shows the group's members and state."""
        self._clock = clock
        self._note = note
        self._text = (
            f"odradek: group {group} has given this member no partitions for {EMPTY_HANDED_MS // 1000} s; "
            f"`{command} {group}` shows its members and its state"
        )
        self._since_ms = clock.monotonic_ms()
        self._has_said = False

    def look(self, partitions: int) -> None:
        """Updates the number of the member's partitions; prints the note when it is due."""
        now_ms = self._clock.monotonic_ms()
        if partitions:
            self._since_ms = now_ms
        elif not self._has_said and now_ms - self._since_ms >= EMPTY_HANDED_MS:
            self._has_said = True
            self._note(self._text)
