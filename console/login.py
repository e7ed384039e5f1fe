"""The two ways to log in: by the token in the URL that the console prints, or as a SASL user of the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from client.clock import pause
from client.errors import HandshakeFailed
from commands.client.connecting import destination
from commands.client.settings import ClientSetting
from commands.errors import CommandError
from console.guard import is_same
from console.watching import UNREADABLE, WatchedCluster, reason_of
from protocol.errors import ErrorCode

TOKEN: Final = "token"

MAX_LOGINS: Final = 4
"""Number of passwords that are tried at the same time."""

FAILURE_MS: Final = 1000
"""Pause after a wrong password, so that passwords can't be guessed fast."""


class Admitted(NamedTuple):
    """A user who may see the console, and the cluster as this user reaches it."""

    user: str
    cluster: WatchedCluster


class Door(Protocol):
    """A way to log in."""

    @property
    def asks_password(self) -> bool:
        """True if a login has a user and a password, not a token."""
        ...

    async def admit(self, fields: Mapping[str, str]) -> Admitted | None:
        """Returns the admission for the fields of a login; None if they are wrong. Raises CommandError if the cluster
        can't be asked."""
        ...

    async def left(self, cluster: WatchedCluster) -> None:
        """Closes a cluster that no login uses any longer, unless others may come to use it."""
        ...


class TokenDoor:
    """Admits a browser that has the token. All act with the settings of the command line."""

    asks_password = False

    def __init__(self, token: str, user: str, cluster: WatchedCluster) -> None:
        self._token = token
        self._admission = Admitted(user, cluster)

    async def admit(self, fields: Mapping[str, str]) -> Admitted | None:
        return self._admission if is_same(fields.get(TOKEN, ""), self._token) else None

    async def left(self, cluster: WatchedCluster) -> None:
        """Keeps the cluster, which the next login uses."""


class SaslDoor:
    """Admits a user whose name and password the cluster accepts. The console acts as that user."""

    asks_password = True

    def __init__(self, settings: Mapping[str, ClientSetting]) -> None:
        self._settings = settings
        self._slots = asyncio.Semaphore(MAX_LOGINS)

    async def admit(self, fields: Mapping[str, str]) -> Admitted | None:
        user, password = fields.get("user", ""), fields.get("password", "")
        if not user or not password:
            return None
        source = "the login"
        settings = {
            **self._settings,
            "sasl.username": ClientSetting(user, source),
            "sasl.password": ClientSetting(password, source),
            "sasl.jaas.config": ClientSetting("", source),
        }
        async with self._slots:
            cluster = WatchedCluster(destination(settings))
            try:
                await cluster.client.metadata()
            except UNREADABLE as error:
                await cluster.close()
                if not isinstance(error, HandshakeFailed) or error.code is not ErrorCode.SASL_AUTHENTICATION_FAILED:
                    raise CommandError(reason_of(error)) from error
                await pause(cluster.clock, FAILURE_MS)
                return None
            except BaseException:
                await cluster.close()
                raise
        return Admitted(user, cluster)

    async def left(self, cluster: WatchedCluster) -> None:
        await cluster.close()
