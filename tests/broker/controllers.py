"""A controller without a broker, in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from broker.config import BrokerConfig
from broker.metadata.elected_controller import ElectedController
from programs.run.controller_server import ControllerServer
from storage.disk import OsDisk
from storage.meta_properties import MetaProperties, write_meta_properties
from tests.waiting import until

NODE = 100


def formatted(directory: Path, node_id: int = NODE) -> str:
    """Formats a log directory, and returns its path."""
    directory.mkdir(exist_ok=True)
    own = MetaProperties("the-cluster", node_id, f"directory-of-{node_id:03}".encode())
    write_meta_properties(OsDisk(), str(directory), own)
    return str(directory)


def is_active(server: ControllerServer) -> bool:
    """True if the controller decides, and its first records are committed."""
    controller, log = server.part.cluster.controller, server.part.log
    return isinstance(controller, ElectedController) and controller.is_active and log.high_watermark == log.end_offset


@asynccontextmanager
async def serving_controller(directory: Path, **options: str) -> AsyncIterator[ControllerServer]:
    """Runs a new controller; `options` are by attribute names."""
    config = {
        "process.roles": "controller",
        "node.id": str(NODE),
        "listeners": "CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"{NODE}@127.0.0.1:9093",
        "log.dirs": formatted(directory),
        **{name.replace("_", "."): value for name, value in options.items()},
    }
    server = ControllerServer(BrokerConfig.parse(config), asyncio.Event())
    await server.start()
    await until(lambda: is_active(server))
    yield server
    await server.stop()
    assert server.exit_code == 0
