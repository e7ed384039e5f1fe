"""The program of the commands for a cluster: their common options, a connection, the action, its exit code."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Final

from cli.actions import Program
from cli.exits import DONE, FAILED, INTERRUPTED, UNREACHABLE, discard_output, fail
from cli.flags import BOOTSTRAP, CONFIG, OUTPUT, PROFILE, SET
from cli.parser import Parser
from client.blocking import BlockingPeers, drive
from client.errors import HandshakeFailed, PeerError, UnsupportedVersion
from commands.client.cluster_client import ClusterClient, draw
from commands.client.connecting import Destination, destination
from commands.client.links import Links
from commands.client.settings import Given, gather
from commands.errors import CommandError, from_kafka
from commands.printing import Output
from commands.session import Action, Session
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.lazy import lazy

if TYPE_CHECKING:
    import asyncio

    from client import clock, pool
else:  # for concurrent actions: an event loop is slow to import
    asyncio = lazy("asyncio")
    clock = lazy("client.clock")
    pool = lazy("client.pool")


def run(options: Namespace) -> int:
    """Runs an action. Returns the exit code."""
    try:
        given = Given(options.bootstrap, options.profile, options.config_file, options.assignments)
        status = _run(destination(gather(given, os.environ)), options)
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
        return DONE
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:  # errors of connections and of input files are of other classes
        discard_output()
        return fail(FAILED, f"{error.filename or 'standard output'}: {error.strerror or error}")
    except CommandError as error:
        return fail(error.status, error.message)
    except (KafkaError, PeerError, ProtocolError) as error:
        failure = _as_command_error(error)
        return fail(failure.status, failure.message)
    return status


def add_common(parser: Parser) -> None:
    """Adds the options of every command."""
    common = parser.add_argument_group("options of every command")
    BOOTSTRAP.add(common)
    for other in ("--bootstrap-server", "--brokers"):  # of Apache Kafka's tools, and of rpk
        parser.alias(other, "--bootstrap")
    PROFILE.add(common)
    CONFIG.add(common, help="settings of a client.properties file")
    SET.add(common, repeatable=True, help="a setting of the connection, such as client.id=NAME")
    OUTPUT.add(common)


PROGRAM: Final = Program(
    run, "0 done, 1 rejected by the cluster, 2 wrong arguments, 3 no broker reached, 130 interrupted", add_common
)


def _run(where: Destination, options: Namespace) -> int:
    """Runs an action over blocking sockets, or on an event loop if it is declared concurrent."""
    if not options.concurrent:
        return drive(_act(BlockingPeers(where.connection, where.bootstrap), where.timeout_ms, options))

    async def on_a_loop() -> int:
        brokers = pool.Peers(where.connection, clock.SystemClock(), draw, where.bootstrap)
        return await _act(brokers, where.timeout_ms, options)

    return asyncio.run(on_a_loop())


async def _act(links: Links, timeout_ms: int, options: Namespace) -> int:
    action: Action = options.action
    async with ClusterClient(links, timeout_ms) as cluster:
        output = Output(options.output)
        status = await action(Session(cluster, output, options))
    return status or (FAILED if output.has_errors else DONE)


def _as_command_error(error: KafkaError | PeerError | ProtocolError) -> CommandError:
    if isinstance(error, KafkaError):
        return from_kafka(error)
    if isinstance(error, UnsupportedVersion):
        return CommandError(f"{error}: the cluster is too old or too new for this command", FAILED)
    if isinstance(error, HandshakeFailed):
        if error.code is ErrorCode.SASL_AUTHENTICATION_FAILED:
            advice = "sasl.username and sasl.password must be a user's, with a password for sasl.mechanism"
        else:
            advice = "security.protocol and sasl.mechanism must match the listener"
        return CommandError(f"{error}; {advice}", UNREACHABLE)
    return CommandError(str(error), UNREACHABLE if isinstance(error, PeerError) else FAILED)
