"""The environment of all processes of a cluster: time, random numbers, the network, and the history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from protocol.errors import KafkaError
from protocol.types import TopicPartition
from tests.simulation.cluster.history import Breach, History
from tests.simulation.cluster.network import Network
from tests.simulation.cluster.processes import PROCESS, ClusterLoop
from tests.simulation.faulty_disk import Crash

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


class Surroundings:
    """The environment that all hosts share."""

    def __init__(self, loop: ClusterLoop, options: Mapping[str, str]) -> None:
        """`options` apply to all brokers."""
        self.loop = loop
        self.dice = loop.dice
        self.options = options
        self.network = loop.network = Network(loop, loop.dice)
        self.history = History(loop)
        loop.set_exception_handler(self._unhandled)

    @property
    def is_calm(self) -> bool:
        """True once no further failures are caused."""
        return self.network.is_calm

    def leader_of(self, name: TopicPartition) -> int:
        """Returns the leader according to the controller; -1 for none."""
        raise NotImplementedError

    def fault(self, error: BaseException | None) -> None:
        """Records a bug of the broker, because nothing that happens here may cause one."""
        if error is not None and not isinstance(error, Crash):
            frames = [*_frames(error)]
            where = f" ({frames[-1]})" if frames else ""
            self.history.breach(Breach.FAULT, f"{type(error).__name__}: {error}{where}")

    def failed(self, error: KafkaError) -> None:
        """Records that a part of a node has failed."""
        self.fault(error)

    def _unhandled(self, _: Any, context: dict[str, Any]) -> None:
        process, error = PROCESS.get(), context.get("exception")
        if error is not None and (process is None or not process.is_dead):
            self.fault(error)


def _frames(error: BaseException) -> Iterator[str]:
    traceback = error.__traceback__
    while traceback is not None:
        yield f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
