"""Builds the control server; imported only if odradek.control.listener is set, in the profile `test`.

Such a process has another event loop, clock and disk from its start on. An interposer in front of the dispatcher
answers its listeners.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version

from broker.config import BrokerConfig
from broker.config.listeners import ListenerAddress
from broker.disks.cleaner import Cleaner
from broker.dispatch.broker import Broker
from broker.dispatch.dispatcher import Dispatcher
from broker.logging import get_logger
from broker.network.listener import Listener
from broker.workers import Workers
from programs.control.doing import Doing
from programs.control.fault_control import FaultControl
from programs.control.full_disk import FullableDisk
from programs.control.interposer import Interposer
from programs.control.looking_in import LookingIn
from programs.control.maintenance import Maintenance
from programs.control.routes import Routes
from programs.control.server import ControlServer
from programs.control.travelling import TravellingClock, TravellingLoop
from storage.open_files import OpenFiles

logger = get_logger(__name__)


def travelling_time() -> tuple[TravellingClock, Callable[[], TravellingLoop]]:
    """Returns a TravellingClock, and the factory of an event loop that follows it."""
    clock = TravellingClock()
    return clock, lambda: TravellingLoop(clock)


class BrokerControl:
    """The control of a broker, from its start to its stop."""

    def __init__(self, config: BrokerConfig, open_files: OpenFiles) -> None:
        assert config.control_address is not None
        self.disk = FullableDisk(open_files)
        self.address = ""
        """The address that clients connect to, once it is bound."""
        self._listen_on = config.control_address
        self._server: ControlServer | None = None
        self._interposer: Interposer | None = None

    def interpose(self, broker: Broker, dispatcher: Dispatcher) -> Interposer:
        """Returns the interposer, which answers the broker's listeners instead of the dispatcher."""
        self._interposer = Interposer(broker, dispatcher.answer)
        return self._interposer

    async def serve(
        self,
        broker: Broker,
        cleaner: Cleaner,
        workers: Workers,
        listeners: Sequence[Listener],
        advertised: Sequence[ListenerAddress],
    ) -> None:
        """Starts to serve, once the broker serves clients. Raises OSError."""
        assert self._interposer is not None
        faults = FaultControl(broker, self.disk, self._interposer.faults)
        maintenance = Maintenance(broker, cleaner, workers)
        looking_in = LookingIn(broker, self._interposer.recorder, listeners, advertised, installed_version())
        self._server = ControlServer(Routes(faults, looking_in, Doing(broker, maintenance, os.urandom)).respond)
        self._server.on_end = faults.owner_gone
        self.address = await self._server.listen(self._listen_on)
        logger.warning(
            "this broker is for tests: its control server lets any client make it fail", control=self.address
        )

    def close(self) -> None:
        """Stops serving, and removes all faults, so that blocked requests continue."""
        if self._interposer is not None:
            for fault in list(self._interposer.faults.faults.values()):
                self._interposer.faults.remove(fault)
        self.disk.on_refused = None
        if self._server is not None:
            self._server.close()


def installed_version() -> str:
    """Returns the version of the package; empty in a source tree that is not installed."""
    try:
        return version("odradek")
    except PackageNotFoundError:
        return ""
