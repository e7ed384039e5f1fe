"""The console beside a broker: a process of its own, which ends with the broker."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from subprocess import PIPE, Popen, TimeoutExpired
from typing import Final

from broker.config.listeners import ListenerAddress
from broker.network.endpoints import address
from protocol.config import ConfigError

STOP_S: Final = 5
"""Time that the console has to stop before it is killed."""


def console_line(listeners: Sequence[ListenerAddress], words: Sequence[str]) -> list[str]:
    """Returns the command line of a console that reaches the broker by a listener without TLS; if clients authenticate
    there, browsers log in with their users. Raises ConfigError if there is no such listener."""
    for protocol, options in (("PLAINTEXT", []), ("SASL_PLAINTEXT", ["--login"])):
        for listener in listeners:
            if listener.security_protocol == protocol:
                own = ["--bootstrap", address(listener), "--set", f"security.protocol={protocol}", *options]
                return ["console", *own, "--stop-with-input", *words]
    raise ConfigError(
        "--console needs a listener without TLS: run `odradek console` with a truststore beside the broker"
    )


class ConsoleBeside:
    """A console beside this broker. The broker holds its standard input: when the broker ends in any way, the console
    stops."""

    def __init__(self, line: Sequence[str]) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._process = Popen([sys.executable, "-P", "-m", "odradek", *line], stdin=PIPE, env=environment)

    def stop(self) -> None:
        """Stops the console, and returns once it has ended."""
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
