"""The browsers that are logged in: each has a cookie, and acts on the cluster as its user."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from console.watching import WatchedCluster

MAX_VISITORS: Final = 500
"""Number of logins that are remembered; the one that was idle longest is forgotten first."""

MAX_IDLE_MS: Final = 12 * 3_600_000
"""Idle time after which a login is forgotten."""

SECRET_BYTES: Final = 32


class Visitor:
    """A browser that is logged in."""

    def __init__(self, user: str, cluster: WatchedCluster, csrf: str, now_ms: int) -> None:
        self.user = user
        self.cluster = cluster
        self.csrf = csrf
        """The secret that every form of this browser's pages carries."""
        self.seen_ms = now_ms
        self.notice = ""
        """The message that the next page shows, once."""
        self.is_out = False
        """True once the login has ended, which also ends its live pages."""

    def take_notice(self) -> str:
        """Returns the message for this page, and forgets it."""
        notice, self.notice = self.notice, ""
        return notice


class Visitors:
    """The logins, by the secret in the browser's cookie."""

    def __init__(self, now_ms: Callable[[], int], draw: Callable[[int], bytes]) -> None:
        """`draw` returns random bytes."""
        self._now_ms = now_ms
        self._draw = draw
        self._visitors: OrderedDict[str, Visitor] = OrderedDict()

    def secret(self) -> str:
        """Returns a new secret."""
        return self._draw(SECRET_BYTES).hex()

    def add(self, user: str, cluster: WatchedCluster) -> tuple[str, list[Visitor]]:
        """Adds a login. Returns the secret for its cookie, and the logins that are forgotten for it."""
        key = self.secret()
        self._visitors[key] = Visitor(user, cluster, self.secret(), self._now_ms())
        excess = len(self._visitors) - MAX_VISITORS
        return key, [self.remove(oldest) for oldest in list(self._visitors)[: max(excess, 0)]]

    def find(self, key: str) -> Visitor | None:
        """Returns the login of a cookie; None if there is none, or if it was idle for too long."""
        visitor = self._visitors.get(key)
        if visitor is None or self._now_ms() - visitor.seen_ms > MAX_IDLE_MS:
            return None
        visitor.seen_ms = self._now_ms()
        self._visitors.move_to_end(key)
        return visitor

    def remove(self, key: str) -> Visitor:
        """Removes a login, and returns it."""
        visitor = self._visitors.pop(key)
        visitor.is_out = True
        return visitor

    def everyone(self) -> list[Visitor]:
        return list(self._visitors.values())
