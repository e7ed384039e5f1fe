"""Runs the console's HTTP server until it is stopped."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, TextIO

import uvicorn

from cli.exits import DONE
from client.address import Address
from client.clock import SystemClock
from client.registry import RegistryAddress
from commands.client.connecting import addresses, destination, security_protocol
from commands.client.settings import BOOTSTRAP, ClientSetting
from commands.errors import CommandError, misuse
from console.app import PAGES, Console, Entrance
from console.audit import ChangeLog
from console.guard import LOCAL_NAMES
from console.login import Door, SaslDoor, TokenDoor
from console.reading import Masks, RecordOpener
from console.registry import SchemaRegistry
from console.rendering import Templates
from console.schemas import FileSchemas
from console.tailing import Tails
from console.visit import Terms
from console.visitors import Visitors
from console.watching import WatchedCluster

BACKLOG: Final = 256
STOP_S: Final = 1
"""Time that open requests have to end when the console stops. Live parts of pages never end by themselves."""

NICENESS: Final = 10
"""The console gives way to a broker on the same machine."""

TOKEN_BYTES: Final = 24


class ServeOptions(NamedTuple):
    """The options of the console."""

    listen: Address
    allows_changes: bool
    asks_password: bool
    """True if browsers log in as SASL users of the cluster."""
    names: Collection[str]
    token: str
    """The token of the URL; empty to draw one."""
    masks: Sequence[str]
    """Regular expressions of what is hidden in keys, values and headers."""
    schemas: FileSchemas
    """The schemas of files, which decode keys and values."""
    registry: RegistryAddress | None
    """The schema registry, which decodes keys and values that name their schema by its id."""
    certificate: str
    key: str
    audit: TextIO
    stops_with_input: bool
    """True if the console stops when its standard input is closed: with the broker that started it."""


def serve(settings: Mapping[str, ClientSetting], options: ServeOptions) -> int:
    """Serves until SIGTERM or SIGINT. Returns the exit code."""
    asyncio.run(_serve(settings, options))
    return DONE


async def _serve(settings: Mapping[str, ClientSetting], options: ServeOptions) -> None:
    listener = _listen(options.listen)
    host, port = options.listen.host, listener.getsockname()[1]
    clock = SystemClock()
    visitors = Visitors(clock.now_ms, os.urandom)
    token = options.token or os.urandom(TOKEN_BYTES).hex()
    cluster = None if options.asks_password else WatchedCluster(destination(settings))
    door: Door = _sasl(settings) if cluster is None else TokenDoor(token, _user(settings), cluster)
    registry = SchemaRegistry(options.registry, clock) if options.registry is not None else None
    templates, opener = Templates(), RecordOpener(Masks(options.masks), options.schemas, registry)
    terms = Terms(
        templates,
        ChangeLog(options.audit, clock.now_ms),
        options.allows_changes,
        opener,
        PAGES,
        ", ".join(map(str, addresses(settings[BOOTSTRAP]))),
        Tails(templates, opener),
        set(),
    )
    is_secure = bool(options.certificate)
    entrance = Entrance(door, visitors, frozenset(options.names) | LOCAL_NAMES, f"odradek-console-{port}", is_secure)
    os.nice(max(NICENESS - os.nice(0), 0))
    server = uvicorn.Server(_config(Console(terms, entrance), options))
    url = f"{'https' if is_secure else 'http'}://{Address(host, port)}/"
    sys.stdout.write(f"ready {url}{'' if options.asks_password else f'?token={token}'}\n")
    sys.stdout.flush()
    if options.stops_with_input:
        _stop_with_input(server)
    try:
        await server.serve(sockets=[listener])
    finally:
        for watched in {visitor.cluster for visitor in visitors.everyone()} | ({cluster} if cluster else set()):
            await watched.close()


def _config(console: Console, options: ServeOptions) -> uvicorn.Config:
    return uvicorn.Config(
        console.application(),
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="off",
        http="h11",
        proxy_headers=False,
        timeout_graceful_shutdown=STOP_S,
        ssl_certfile=options.certificate or None,
        ssl_keyfile=options.key or None,
    )


def _listen(where: Address) -> socket.socket:
    """Returns a socket that accepts connections already, so that the URL can be opened as soon as it is printed."""
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((where.host, where.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise CommandError(f"--listen {where}: {error.strerror or error}") from None
    return listener


def _sasl(settings: Mapping[str, ClientSetting]) -> SaslDoor:
    if not security_protocol(settings).startswith("SASL_"):
        source = settings["security.protocol"].source
        raise misuse(f"--login needs security.protocol SASL_SSL or SASL_PLAINTEXT, not what {source} says")
    return SaslDoor(settings)


def _user(settings: Mapping[str, ClientSetting]) -> str:
    """Returns the name under which changes of a browser with the token are in the audit log."""
    return settings["sasl.username"].value or "token"


def _stop_with_input(server: uvicorn.Server) -> None:
    """Stops the server once standard input is closed."""
    loop = asyncio.get_running_loop()
    stdin = sys.stdin.fileno()

    def readable() -> None:
        with suppress(OSError):
            if os.read(stdin, 1024):
                return
        loop.remove_reader(stdin)
        server.should_exit = True

    loop.add_reader(stdin, readable)
