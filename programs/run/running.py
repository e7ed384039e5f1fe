"""Runs a broker, a controller, or both in this process, until a signal stops it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import uvloop

from broker import logging
from broker.clock import Clock, SystemClock
from broker.config import BrokerConfig
from broker.config.listeners import ListenerAddress
from broker.core import is_compiled
from broker.disks.lock import DirectoryInUse, DirectoryLock
from broker.network.endpoints import address
from cli.exits import FAILED
from coordinator.cluster.formatting import WrongOwner
from programs.run import interpreter
from programs.run.warming_up import warm_up
from protocol.config import ConfigError
from protocol.errors import KafkaError
from protocol.lazy import lazy
from storage.checkpoint import CorruptCheckpoint
from storage.disk import OsDisk

if TYPE_CHECKING:
    from programs.run import console_process, controller_server, controlling, server
    from programs.zookeeper import generated_id
else:  # each node needs some of it
    console_process = lazy("programs.run.console_process")
    controller_server = lazy("programs.run.controller_server")
    controlling = lazy("programs.run.controlling")
    generated_id = lazy("programs.zookeeper.generated_id")
    server = lazy("programs.run.server")

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

logger = logging.get_logger(__name__)


class NodeProcess(Protocol):
    """The lifecycle of a node: `start`, then clients connect, then `stop`."""

    exit_code: int
    advertised: list[ListenerAddress]

    @property
    def announced(self) -> str:
        """The lines before the ready line, if any."""
        ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


def run(config: BrokerConfig, console: Sequence[str] | None = None) -> int:
    """Serves until SIGTERM or SIGINT, and returns the exit code: 1, with a logged line, if the broker can't start.
    `console` has further options of a console that runs beside the broker; None runs none."""
    logging.take_over_storage()
    core = "compiled" if is_compiled() else "pure Python (the compiled build needs less processor time)"
    logger.info("starting", core=core, python=sys.version.split()[0])
    try:
        with contextlib.ExitStack() as stack:
            failed = _lock_directories(config, stack)
            config = _with_id(config)
            clock, new_loop = _time(config)
            with asyncio.Runner(loop_factory=new_loop) as runner:
                return runner.run(_serve(config, failed, clock, console))
    except (ConfigError, DirectoryInUse, WrongOwner, CorruptCheckpoint, KafkaError, OSError) as error:
        logger.error("cannot start", reason=_reason(error))
        return FAILED


def _reason(error: Exception) -> str:
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


def _with_id(config: BrokerConfig) -> BrokerConfig:
    if not config.generates_id:
        return config
    return generated_id.with_broker_id(config, OsDisk())


def _time(config: BrokerConfig) -> tuple[Clock, Callable[[], asyncio.AbstractEventLoop]]:
    """Returns the clock of the process, and the factory of its event loop: the machine's clock, unless a control server
    is configured."""
    if config.control_address is None:
        return SystemClock(), uvloop.new_event_loop
    return controlling.travelling_time()


def _directories(config: BrokerConfig) -> list[str]:
    """Returns the log directories and the metadata's, each once."""
    return list(dict.fromkeys((*config.data_dirs, config.metadata_dir)))


def _lock_directories(config: BrokerConfig, stack: contextlib.ExitStack) -> dict[str, Exception]:
    """Locks the directories against other brokers until the stack is closed. Returns the errors of log directories that
    couldn't be locked. Raises OSError if it is the metadata directory, and DirectoryInUse if another process has a
    lock."""
    failed: dict[str, Exception] = {}
    for directory in _directories(config):
        try:
            stack.callback(DirectoryLock(directory).release)
        except OSError as error:
            if directory == config.metadata_dir:
                expected = "expected a directory that the broker's user can write to, or can create"
                raise OSError(error.errno, f"data directory {directory}: {error.strerror}; {expected}") from None
            failed[directory] = error
    return failed


async def _serve(
    config: BrokerConfig, failed: Mapping[str, Exception], clock: Clock, console: Sequence[str] | None
) -> int:
    """Runs the broker until a signal or a failure stops it, and returns the exit code."""
    stop = asyncio.Event()
    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    node = _node(config, stop, failed, clock)
    if not await _started(node, stop):
        return node.exit_code
    interpreter.begin()
    sys.stdout.write(f"{node.announced}ready {address(node.advertised[0])}\n")
    sys.stdout.flush()
    with contextlib.ExitStack() as stack:
        if console is not None:
            line = console_process.console_line(node.advertised, console)
            stack.callback(console_process.ConsoleBeside(line).stop)
        warming_up = asyncio.create_task(warm_up(config))
        await stop.wait()
        warming_up.cancel()
    await node.stop()
    return node.exit_code


async def _started(node: NodeProcess, stop: asyncio.Event) -> bool:
    """Starts the broker. Returns False if it was stopped during the start, which takes long while controllers can't be
    reached."""
    starting, stopping = asyncio.ensure_future(node.start()), asyncio.ensure_future(stop.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if starting.done():
        await starting
        return True
    starting.cancel()
    await asyncio.wait([starting])
    return False


def _node(config: BrokerConfig, stop: asyncio.Event, failed: Mapping[str, Exception], clock: Clock) -> NodeProcess:
    if config.is_broker:
        return server.Server(config, stop, failed, clock)
    return controller_server.ControllerServer(config, stop)  # needs no `failed`: it has no logs of topics
