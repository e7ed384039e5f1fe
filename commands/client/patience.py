"""The patience of members of groups: with a coordinator that does not answer, and with partitions that do not come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from commands.client.links import Moments
from commands.errors import BrokerUnreachable, CoordinatorAway
from protocol.peer_errors import RequestTimedOut

LOST: Final = (BrokerUnreachable, CoordinatorAway, RequestTimedOut)
"""Failures after which a member asks again: its coordinator moves, loads, or was busy for longer than a request may
take, and may have carried out what it did not answer."""

GIVE_UP_MS: Final = 120_000
"""After which a member is in its group no longer, wherever that is coordinated: sessions are 45 seconds by default, and
a coordinator loads in less than the rest."""

EMPTY_HANDED_MS: Final = 10_000
"""After which a person wonders why nothing comes."""


class Patience:
    """How long a member goes on without an answer of its coordinator."""

    def __init__(self, clock: Moments) -> None:
        self._clock = clock
        self._since_ms: int | None = None

    def answered(self) -> None:
        self._since_ms = None

    def lost(self, error: Exception) -> None:
        """Takes a failure. Raises it once nobody has answered for GIVE_UP_MS."""
        now_ms = self._clock.monotonic_ms()
        if self._since_ms is None:
            self._since_ms = now_ms
        elif now_ms - self._since_ms >= GIVE_UP_MS:
            raise error


class EmptyHanded:
    """Says, once, that a member has had nothing to read for a while."""

    def __init__(self, clock: Moments, note: Callable[[str], None], group: str, command: str) -> None:
        """`command` is what shows the group's members and state."""
        self._clock = clock
        self._note = note
        self._text = (
            f"odradek: group {group} has given this member no partitions for {EMPTY_HANDED_MS // 1000} s; "
            f"`{command} {group}` shows its members and its state"
        )
        self._since_ms = clock.monotonic_ms()
        self._has_said = False

    def look(self, partitions: int) -> None:
        """Takes how many partitions the member has now."""
        now_ms = self._clock.monotonic_ms()
        if partitions:
            self._since_ms = now_ms
        elif not self._has_said and now_ms - self._since_ms >= EMPTY_HANDED_MS:
            self._has_said = True
            self._note(self._text)
