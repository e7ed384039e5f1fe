"""A broker in a process of the test suite, which can be killed, paused and restarted."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from odradek.testing.control import Control
from odradek.testing.controlled import ControlledBroker
from odradek.testing.errors import BrokerError
from odradek.testing.process import START_S, STOP_S, ServerProcess
from odradek.testing.security import CERTIFICATE, DEFAULT_MECHANISM, Security

__tracebackhide__ = True

TEST_SETTINGS: Final[Mapping[str, str]] = {
    "odradek.profile": "test",
    "odradek.control.listener": "127.0.0.1:0",
    "group.initial.rebalance.delay.ms": "0",  # no wait for further members
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}
"""Options that differ from Kafka's defaults, so that it is ready sooner and a group's first member joins at once."""

PYTHON_NAMES: Final[Mapping[str, str]] = {
    "bootstrap.servers": "bootstrap_servers",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
}
"""The keywords of kafka-python and aiokafka, by librdkafka's names."""


class ServedBroker(ControlledBroker):
    """A broker in a process. It keeps its port and data during restarts."""

    def __init__(self, server: ServerProcess | None = None, security: Security | None = None) -> None:
        super().__init__("", "")
        self._server = server
        self._security = security or Security()

    @property
    def bootstrap(self) -> str:
        if not self._bootstrap:
            raise _not_started()
        return self._bootstrap

    @property
    def is_started(self) -> bool:
        """True from `start` to `close`, including while it is killed, stopped or paused."""
        return self._server is not None

    @property
    def process(self) -> ServerProcess:
        """Returns the process: `pid`, `is_running`, `log`. Raises BrokerError before a start."""
        if self._server is None:
            raise _not_started()
        return self._server

    @property
    def directory(self) -> Path:
        """Returns its temporary directory: the folder `data` in it has Kafka's own files. Raises BrokerError before a
        start."""
        return self.process.directory

    @property
    def log(self) -> str:
        """Returns the broker's log."""
        return self.process.log

    @property
    def certificate(self) -> Path:
        """Returns the file with the certificate that clients must trust. Raises BrokerError if it has no TLS."""
        if not self._security.tls:
            raise BrokerError("this broker has no certificate: it was made without tls=True")
        return self.directory / CERTIFICATE

    def client_config(self, user: str | None = None, *, mechanism: str = DEFAULT_MECHANISM) -> dict[str, str]:
        """Returns the options of a client, with librdkafka's names. `user` is one of `users`, by default the first.
        Raises ValueError for an unknown user."""
        config = {"bootstrap.servers": self.bootstrap}
        if self._security.is_open and user is None:
            return config
        return config | self._security.client_config(user, mechanism, self.directory / CERTIFICATE)

    def client_kwargs(self, user: str | None = None, *, mechanism: str = DEFAULT_MECHANISM) -> dict[str, object]:
        """Returns the same options as keyword arguments of kafka-python and aiokafka."""
        config = self.client_config(user, mechanism=mechanism)
        arguments: dict[str, object] = {word: config[name] for name, word in PYTHON_NAMES.items() if name in config}
        if self._security.tls:
            arguments["ssl_context"] = ssl.create_default_context(cafile=str(self.certificate))
        return arguments

    def restart(self, *, timeout_s: float = START_S) -> None:
        """Stops it cleanly, if it runs, and starts it again. Its faults and recorded requests are lost, and its clock
        is the machine's again."""
        if self.process.is_running:
            self.process.stop()
        self.serve(timeout_s)

    def serve(self, timeout_s: float = START_S) -> None:
        """Starts the process, and returns once it serves. Raises BrokerError, with the end of its log, if it
        doesn't."""
        ready = self.process.start(timeout_s)
        self._bootstrap, self._control = ready.address, Control(ready.control)

    def stop(self, *, timeout_s: float = STOP_S) -> None:
        """Stops it cleanly; `restart` starts it again. Raises BrokerError if it doesn't end."""
        self.process.stop(timeout_s)

    def kill(self) -> None:
        """Kills it with SIGKILL; `restart` starts it again."""
        self.process.kill()

    def pause(self) -> None:
        """Suspends it with SIGSTOP: connections stay open, and nothing is answered until `resume`."""
        self.process.pause()

    def resume(self) -> None:
        """Continues it after `pause`."""
        self.process.resume()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Suspends it during a `with` block."""
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def recover(self) -> None:
        """Restarts or resumes it if it doesn't serve, and removes all faults. Its clock is not changed."""
        self.resume()
        if not self.process.is_running:
            self.serve()
        if self.control.address:
            self.clear_faults()


def _not_started() -> BrokerError:
    return BrokerError("the broker is not started: use `with Broker() as broker`, or broker.start()")
