"""The process of the controller: our own controller over its log, and the channels to and from brokers.

Brokers send requests by `Channel`, over the network's links. Committed batches reach them late, one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from broker.metadata.local_controller import LocalController
from broker.metadata.opening import Metadata, MetadataSettings, open_metadata
from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.controller import THIS_BROKER, Asker
from coordinator.cluster.image import Image
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.record import MetadataBatch
from protocol.errors import ErrorCode, KafkaError
from tests.simulation.cluster.disk import LifeDisk
from tests.simulation.cluster.processes import Process, current
from tests.simulation.cluster.surroundings import Surroundings
from tests.simulation.faulty_disk import Crash, FaultyDisk
from tests.simulation.virtual_time import InlineWorkers, virtual_clock

R = TypeVar("R")

HOST = "controller"
NODE_ID = 100
CLUSTER_ID = "simulated-cluster-idAA"
DATA = "/data"
SESSION_S = 1.5
ANSWER_WITHIN_S = 1.0
"""Timeout of most requests to the controller."""

OPTIONS = ClusterOptions(
    node_id=NODE_ID,
    controller_listeners=(Endpoint("CONTROLLER", HOST, 9093),),
    has_broker=False,
    broker_session_timeout_ms=round(SESSION_S * 1_000),
    default_replication_factor=3,
    min_insync_replicas=2,
)


class ControllerNode:
    """The controller over all of its processes."""

    def __init__(self, world: Surroundings) -> None:
        self.world = world
        self.dice = dice = world.dice
        self.disk = FaultyDisk(dice)
        self.disk.mkdir(DATA)
        self.batches: list[MetadataBatch] = []
        """All batches that were ever committed."""
        self.process: Process
        self.controller: LocalController
        self.metadata: Metadata
        self._observers: list[asyncio.Future[None]] = []

    @property
    def image(self) -> Image:
        """Returns the controller's image of the cluster."""
        return self.metadata.image

    @property
    def is_alive(self) -> bool:
        return not self.process.is_dead

    def start(self) -> None:
        """Starts a process, which continues the log of the last one."""
        loop = self.world.loop
        while True:
            self.process = Process(HOST, loop, self._died)
            try:
                self.process.context.run(self._open, self.process)
            except Crash:
                continue
            break

    def _open(self, process: Process) -> None:
        self.metadata = metadata = open_metadata(
            MetadataSettings(log_dirs=(DATA,), options=OPTIONS, cluster_id=CLUSTER_ID),
            disk=LifeDisk(self.disk, process),
            clock=virtual_clock(),
            worker=InlineWorkers(),
            random_bytes=self.dice.randbytes,
            on_failure=self.world.failed,
        )
        committed = [batch for batch in metadata.metadata_log.batches(0) if batch.records]
        before = len(self.batches)
        assert [one.records for one in committed[:before]] == [one.records for one in self.batches], "metadata changed"
        for batch in committed[before:]:
            self._committed(batch)
        metadata.metadata_log.listen(self._committed)
        assert isinstance(metadata.controller, LocalController)
        self.controller = metadata.controller

    def _died(self, _: Process) -> None:
        self.disk.crash(power=False)

    def _committed(self, batch: MetadataBatch) -> None:
        if not batch.records:
            return
        self.batches.append(batch)
        self.world.history.note_metadata(batch)
        observers, self._observers = self._observers, []
        for observer in observers:
            if not observer.done():
                observer.set_result(None)

    # Requests

    def hear_again(self, request: object, response: type[Any], asker: Asker) -> None:
        """Carries out a request again whose answer no broker awaits."""
        if self.is_alive:
            self.process.spawn(ignored(self.controller.submit(request, response, asker)))

    async def observe(self, loader: MetadataLoader) -> None:
        """Brings the committed batches to a broker, as far as the link to it allows."""
        position, host, network = 0, current().host, self.world.network
        while True:
            if position == len(self.batches):
                observer = asyncio.get_running_loop().create_future()
                self._observers.append(observer)
                await observer
            end = len(self.batches)
            if not network.is_calm and self.dice.random() < 0.3:
                end = self.dice.randint(position + 1, end)
            await network.passed(HOST, host)
            for batch in self.batches[position:end]:
                loader.commit(batch)
            position = end


class Channel:
    """A broker's channel to the controller: a `coordinator.cluster.controller.Controller`."""

    def __init__(self, node: ControllerNode) -> None:
        self._node = node

    active = None
    has_renounced = False

    async def submit(self, request: object, response: type[R], asker: Asker = THIS_BROKER) -> R:
        """Returns the controller's answer, if it arrives in time."""
        answering = asyncio.ensure_future(self._carried(request, response, asker))
        await asyncio.wait([answering], timeout=ANSWER_WITHIN_S)
        if not answering.done():
            answering.cancel()
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"no answer to {type(request).__name__}")
        return answering.result()

    async def _carried(self, request: object, response: type[R], asker: Asker) -> R:
        node, network, host = self._node, self._node.world.network, current().host
        await network.passed(host, HOST)
        if not node.is_alive or network.is_lost():
            await asyncio.sleep(ANSWER_WITHIN_S)
        task = node.process.spawn(node.controller.submit(request, response, asker))
        task.add_done_callback(_answered, context=node.world.loop.root)
        if network.comes_twice():  # the request comes once more, perhaps when its sender has died
            again_s = node.dice.expovariate(1 / network.late_s)
            node.world.loop.call_later(again_s, node.hear_again, request, response, asker, context=node.world.loop.root)
        answer = await asyncio.shield(task)
        await network.passed(HOST, host)
        if network.is_lost():
            await asyncio.sleep(ANSWER_WITHIN_S)
        return answer


def _answered(task: asyncio.Task[Any]) -> None:
    """Completes a request; its sender may be gone, and then ignores the error."""
    if not task.cancelled():
        task.exception()


async def ignored(work: Coroutine[Any, Any, Any]) -> None:
    """Ignores the answer to a copy of a request."""
    with suppress(KafkaError):
        await work
