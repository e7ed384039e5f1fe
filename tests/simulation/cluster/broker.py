"""A broker of the world `cluster`: a whole `Server` on a host with a faulty disk, over all of its processes."""

from __future__ import annotations

import asyncio
from typing import cast

from broker.config import BrokerConfig
from broker.metadata.followed_log import FollowedLog
from broker.metadata.log import open_metadata_log
from broker.metadata.opening import ClusterPart, Metadata, MetadataSettings, begin_incarnation
from broker.metadata.remote_node import LifecycleTimes, RemoteNode
from broker.metadata.snapshots import SnapshotRules, Snapshots
from broker.replica.alter_partition import altered_by
from coordinator.cluster.formatting import claim, random_uuid
from coordinator.cluster.image import Image
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.options import ClusterOptions
from programs.run.server import Server
from protocol.errors import KafkaError
from storage.disk import Disk
from tests.simulation.cluster.controller import CLUSTER_ID, OPTIONS, Channel, ControllerNode
from tests.simulation.cluster.disk import LifeDisk
from tests.simulation.cluster.processes import Process
from tests.simulation.cluster.surroundings import Surroundings
from tests.simulation.faulty_disk import Crash, FaultyDisk
from tests.simulation.virtual_time import InlineWorkers, virtual_clock

DATA = "/data"
TIMES = LifecycleTimes(heartbeat_ms=300, session_ms=1_500, registration_ms=60_000)
MAX_LAG_MS = 1_000
SETTINGS = {
    "process.roles": "broker",
    "controller.quorum.bootstrap.servers": "controller:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "log.dirs": DATA,
    "log.cleaner.enable": "false",
    "num.recovery.threads.per.data.dir": "1",
    "replica.lag.time.max.ms": str(MAX_LAG_MS),
    "replica.fetch.wait.max.ms": "200",
    "replica.fetch.backoff.ms": "50",
    "replica.socket.timeout.ms": "800",
    "replica.high.watermark.checkpoint.interval.ms": "700",
    "log.flush.offset.checkpoint.interval.ms": "900",
    "log.segment.delete.delay.ms": "0",
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}


class ClusterServer(Server):
    """A broker without threads or sockets, whose controller belongs to the world."""

    def __init__(self, config: BrokerConfig, node: BrokerNode, process: Process) -> None:
        super().__init__(config, asyncio.Event())
        self._node = node
        self._process = process
        self._disk = cast(Disk, LifeDisk(node.disk, process))
        self._clock = virtual_clock()

    async def _join(self) -> None:
        """Registers with the controller, and follows its committed records."""
        node, dice = self._node, self._node.dice
        world = node.world
        channel = Channel(node.controller)
        disk, clock, worker = self._disk, self._clock, InlineWorkers()
        log_dirs = tuple(node.config.log_dirs or ())
        settings = MetadataSettings(
            log_dirs=log_dirs, options=ClusterOptions(node_id=node.node_id), cluster_id=CLUSTER_ID
        )

        def new_uuid() -> bytes:
            return random_uuid(dice.randbytes)

        identity = claim(
            log_dirs, DATA, node.node_id, OPTIONS.controller_listeners, CLUSTER_ID, new_uuid,
            disk=disk, now_ms=clock.now_ms(),
        )  # fmt: skip
        log = open_metadata_log(FollowedLog, DATA, disk=disk, clock=clock, worker=worker)
        loader = MetadataLoader(Image(CLUSTER_ID), world.fault)
        loader.image.controller_id = node.node_id
        snapshots = Snapshots(loader, log, SnapshotRules(), 0, disk=disk, clock=clock, worker=worker)
        own = RemoteNode(
            begin_incarnation(settings, identity, new_uuid, disk),
            channel,
            loader.image,
            clock=clock,
            draw=dice.random,
            times=TIMES,
            on_failure=world.failed,
        )
        observing = asyncio.ensure_future(node.controller.observe(loader))

        async def stop() -> None:
            observing.cancel()

        self.metadata = Metadata(ClusterPart(loader.image, loader, log, channel, snapshots, stop), own)
        await own.register(self._endpoints)
        await own.caught_up()
        self._alter = altered_by(channel)
        self.logs = await self._workers.call(self._open_logs)


class BrokerNode:
    """A host with a broker: `start`, then `kill` or `stop`, and so on."""

    def __init__(self, world: Surroundings, controller: ControllerNode, node_id: int) -> None:
        self.world = world
        self.controller = controller
        self.node_id = node_id
        self.dice = dice = world.dice
        self.host = f"broker{node_id}"
        self.disk = FaultyDisk(dice)
        self.config = BrokerConfig.parse(
            {
                **SETTINGS,
                **world.options,
                "node.id": str(node_id),
                "advertised.listeners": f"PLAINTEXT://{self.host}:9092",
            }
        )
        self._make_directories()
        self.process: Process | None = None
        self.server: ClusterServer | None = None
        """The server, while it serves clients."""
        self._loses_power = False

    @property
    def is_alive(self) -> bool:
        return self.process is not None and not self.process.is_dead

    def start(self) -> None:
        """Begins a process."""
        assert not self.is_alive
        self.process = Process(self.host, self.world.loop, self._died)
        self.process.spawn(self._live(self.process))

    async def _live(self, process: Process) -> None:
        server = ClusterServer(self.config, self, process)
        try:
            await server.start()
            self.server = server
            await server._stop.wait()
        except Crash:
            return
        except KafkaError:
            pass  # no controller took it: it is started again
        except Exception as error:
            self.world.fault(error)
        process.die()

    def kill(self, *, power: bool = False) -> None:
        """Ends the process. If the machine ends too, data that was not flushed is lost."""
        assert self.process is not None
        self._loses_power = power
        self.process.die()

    def replace_disk(self) -> None:
        """Restarts the machine with an empty disk; its process has ended before."""
        assert not self.is_alive
        self.disk = FaultyDisk(self.dice)
        self._make_directories()

    def _make_directories(self) -> None:
        for directory in self.config.log_dirs or ():
            self.disk.mkdir(directory)

    async def stop(self) -> None:
        """Stops the broker cleanly, unless another event interrupts the stop."""
        server, process = self.server, self.process
        if server is None or process is None:
            return
        self.server = None
        task = process.spawn(server.stop())
        while not task.done() and not process.is_dead:  # noqa: ASYNC110 (a process that dies tells nobody)
            await asyncio.sleep(0.05)
        if not process.is_dead:
            if task.exception() is not None:
                self.world.fault(task.exception())
            process.die()

    def _died(self, _: Process) -> None:
        self.server = None
        self.disk.crash(power=self._loses_power)
        self._loses_power = False
