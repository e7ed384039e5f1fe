"""Exits with 0 when the broker answers an ApiVersions request.

`healthy.py [HOST:PORT | /proc/PID]`: without an address it asks a listener of the broker that is this process, by
default the container's first, as its command line and its environment configure it.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

TIMEOUT_S = 2.0
API_VERSIONS, VERSION, CORRELATION_ID = 18, 0, 7

FIRST_PROCESS = "/proc/1"
LOOPBACK = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
"""The address to connect to, by the host of a listener on all interfaces."""


class Target(NamedTuple):
    """The address of a listener, and if its connections are encrypted."""

    host: str
    port: int
    is_encrypted: bool = False


def is_healthy(target: Target) -> bool:
    """True if a broker there answers with its APIs and no error, or requires a certificate."""
    request = struct.pack(">hhih", API_VERSIONS, VERSION, CORRELATION_ID, -1)
    try:
        with ExitStack() as stack:
            connection = stack.enter_context(socket.create_connection(target[:2], TIMEOUT_S))
            if target.is_encrypted:
                connection = stack.enter_context(_unverified().wrap_socket(connection))
            answer = stack.enter_context(connection.makefile("rb"))
            connection.sendall(struct.pack(">i", len(request)) + request)
            head = answer.read(10)
    except ssl.SSLError as error:
        return "CERTIFICATE_REQUIRED" in str(error) or "HANDSHAKE_FAILURE" in str(error)
    except OSError:
        return False
    return len(head) == 10 and struct.unpack(">iih", head)[1:] == (CORRELATION_ID, 0)


def _unverified() -> ssl.SSLContext:
    """Returns a TLS context for a broker on this machine, whose certificate names another host."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def target_of(words: Sequence[str], environ: Mapping[str, str]) -> Target:
    """Returns a listener of the broker that `odradek WORDS…` starts: one without encryption, if there is one. Raises
    SystemExit or ConfigError for words that start no broker."""
    import odradek

    odradek.add_packages()
    from broker.config.listeners import is_tls
    from cli.actions import declare_command
    from cli.table import COMMANDS
    from programs.run.commands import load_options

    options = declare_command("run", COMMANDS["run"]).parser.parse_args(words[1:])
    config = load_options(options, environ).config
    listeners = sorted(config.bound_listeners or config.bound_controllers, key=is_tls)
    _, host, port, _ = listeners[0]
    return Target(LOOPBACK.get(host, host), port, is_tls(listeners[0]))


def process_of(folder: str) -> tuple[list[str], dict[str, str]]:
    """Returns the words after `odradek` of a process's command line, and its environment. Without such a process, as
    while Testcontainers prepares the broker, those of a broker with this environment."""
    try:
        with open(f"{folder}/cmdline", "rb") as file:
            words = file.read().decode().split("\0")[:-1]
        with open(f"{folder}/environ", "rb") as file:
            entries = file.read().decode().split("\0")
    except OSError:
        return ["run"], dict(os.environ)
    after = next((words[at + 1 :] for at, word in enumerate(words) if word.rpartition("/")[2] == "odradek"), [])
    if after[:1] != ["run"]:
        return ["run"], dict(os.environ)
    return after, dict(entry.split("=", 1) for entry in entries if "=" in entry)


def main(arguments: Sequence[str]) -> int:
    """Returns the exit code."""
    where = arguments[0] if arguments else FIRST_PROCESS
    if where.startswith("/proc/"):
        return 0 if is_healthy(target_of(*process_of(where))) else 1
    host, _, port = where.rpartition(":")
    return 0 if is_healthy(Target(host, int(port))) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
