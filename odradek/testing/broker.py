"""A test's own broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from odradek.testing.aio import AsyncBroker
from odradek.testing.control import Control
from odradek.testing.errors import BrokerError
from odradek.testing.guard import GuardedDirectory
from odradek.testing.lifetime import Lifetime
from odradek.testing.ports import ReservedPort
from odradek.testing.process import START_S, ServerProcess
from odradek.testing.security import Acl, Security, make_certificate
from odradek.testing.served import TEST_SETTINGS, ServedBroker

__tracebackhide__ = True


class Broker(ServedBroker, Lifetime[AsyncBroker]):
    """A real broker, on a free loopback port and in a temporary directory, until the end of a `with` block.

        with Broker() as broker:
            producer = Producer({"bootstrap.servers": broker.bootstrap})

    `async with Broker() as broker` gives the same with coroutines (`AsyncBroker`). The broker's process and files are
    removed when this process ends in any way. After its end it can be started again, as a new broker.
    """

    def __init__(
        self,
        settings: Mapping[str, str | int | bool] | None = None,
        *,
        tls: bool = False,
        users: Mapping[str, str] | None = None,
        acls: Sequence[Acl] | None = None,
    ) -> None:
        """`settings` are Kafka's options by name (docs/configuration.md). `tls` enables TLS, with a certificate for
        localhost. `users` are passwords by user, for PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512. With `acls`, even an empty
        list, users may do only what the entries allow. Raises ValueError for contradicting arguments."""
        security = Security(tls, users, acls)
        security.check()
        super().__init__(None, security)
        self._given = {name: option_text(name, value) for name, value in (settings or {}).items()}
        self._home: GuardedDirectory | None = None
        self._ports: list[ReservedPort] = []

    @property
    def aio(self) -> AsyncBroker:
        """Returns this broker with coroutines, for tests that have an event loop."""
        return AsyncBroker(self)

    def start(self, *, timeout_s: float = START_S) -> None:
        """Starts the broker, and returns once it serves. Raises BrokerError, with the end of its log, if it doesn't."""
        if self._home is not None:
            raise BrokerError("the broker is already started")
        self._home = GuardedDirectory()
        try:
            self._server = ServerProcess("broker", self._home, self._settings(self._home))
            self.serve(timeout_s)
            self._let_in()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stops the broker, and removes its directory. May be called again."""
        if self._server is not None:
            self._server.forget()
        if self._home is not None:
            self._home.close()
        for port in self._ports:
            port.release()
        self._home, self._server, self._ports = None, None, []
        self._bootstrap, self._control = "", Control("")

    def _settings(self, home: GuardedDirectory) -> dict[str, str]:
        self._ports = [ReservedPort(), *([] if self._security.is_open else [ReservedPort()])]
        keystore = make_certificate(home.path) if self._security.tls else home.path
        addresses = self._security.settings(self._ports[0].address, self._ports[-1].address, keystore)
        return {**TEST_SETTINGS, "log.dirs": str(home.path / "data"), **addresses, **self._given}

    def _let_in(self) -> None:
        """Sets the passwords that are not in its options, and the access control entries."""
        for user in self._security.scram_users():
            self.control.post("/v1/users", user)
        for acl in self._security.acls or ():
            self.control.post("/v1/acls", acl.fields())


def option_text(name: str, value: str | int | bool) -> str:
    """Returns an option's value as text for an options file. Raises ValueError if the name can't be an option's."""
    if not name or any(sign in name for sign in " \t\n\r\f=:\\#!"):
        raise ValueError(f"settings: {name!r} is not the name of an option, such as log.retention.ms")
    return str(value).lower() if isinstance(value, bool) else str(value)
