"""Runs one command: its options, a connection, its action, its exit code."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from importlib import import_module

from commands.client.blocking import BlockingLinks, drive
from commands.client.cluster_client import ClusterClient
from commands.client.connecting import Destination, destination
from commands.client.links import Links
from commands.client.settings import Given, gather
from commands.declaring import Action, Actions, Session
from commands.errors import DONE, FAILED, INTERRUPTED, UNREACHABLE, CommandError, from_kafka
from commands.printing import Output
from commands.table import ClusterCommand
from protocol.errors import KafkaError, ProtocolError
from protocol.peer_errors import HandshakeFailed, PeerError, UnsupportedVersion


def declare(name: str, command: ClusterCommand) -> Actions:
    """Declares the actions of a command."""
    actions = Actions(name, command.purpose)
    import_module(command.module).declare(actions)
    return actions


def main(name: str, command: ClusterCommand, words: Sequence[str]) -> int:
    """Runs `odradek NAME WORDS…`; returns the exit code."""
    options = declare(name, command).parser.parse_args(words)
    try:
        given = Given(options.bootstrap, options.profile, options.config_file, options.assignments)
        status = _run(destination(gather(given, os.environ)), options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        return INTERRUPTED
    except CommandError as error:
        return _fail(error)
    except (KafkaError, PeerError, ProtocolError) as error:
        return _fail(_as_command_error(error))
    return status


def _run(where: Destination, options: Namespace) -> int:
    """Runs an action over blocking sockets, or on an event loop if it is declared concurrent."""
    if not options.concurrent:
        return drive(_act(BlockingLinks(where), where.timeout_ms, options))
    import asyncio

    from commands.client.loop_links import LoopLinks

    async def on_a_loop() -> int:
        return await _act(LoopLinks(where), where.timeout_ms, options)

    return asyncio.run(on_a_loop())


async def _act(links: Links, timeout_ms: int, options: Namespace) -> int:
    action: Action = options.action
    async with ClusterClient(links, timeout_ms) as cluster:
        status = await action(Session(cluster, Output(options.output), options))
    return DONE if status is None else status


def _as_command_error(error: KafkaError | PeerError | ProtocolError) -> CommandError:
    if isinstance(error, KafkaError):
        return from_kafka(error)
    if isinstance(error, UnsupportedVersion):
        return CommandError(f"{error}: the cluster is too old or too new for this command", FAILED)
    if isinstance(error, HandshakeFailed):
        return CommandError(f"{error}; security.protocol and sasl.mechanism must match the listener", UNREACHABLE)
    return CommandError(str(error), UNREACHABLE if isinstance(error, PeerError) else FAILED)


def _fail(error: CommandError) -> int:
    sys.stdout.flush()
    sys.stderr.write(f"odradek: {error.message}\n")
    return error.status
