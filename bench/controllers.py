"""Three controllers without brokers, of Odradek and of Apache Kafka in turn: `python -m bench.controllers`.

Measures their processor time and memory while idle, changes of metadata per second, and with 100,000 partitions: their
creation, memory, the start of a controller from its snapshot, and the time from a kill of the active controller to the
next change. Three brokers exist only as registrations with heartbeats, so nothing but controllers is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from bench.clusters.cluster import APACHE, ODRADEK
from bench.clusters.makes import CLUSTER_ID, Make, write_properties
from bench.clusters.node import ClusterProcess
from bench.figures import MB
from bench.peers.peer import free_port
from client.address import Address
from client.aio import Connection, connect
from client.clock import SystemClock
from client.errors import PeerError
from client.settings import Settings
from protocol.errors import ErrorCode, error_code
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

NODES: Final = {
    101: "JEXY6aqzQY-32P5TStzaFg",
    102: "MvDxzVmcRsaTz33bUuRU6A",
    103: "07R5amHmR32VDA6jHkGbTA",
}
"""The node ids of the controllers, and the ids of their directories."""

BROKERS: Final = (1, 2, 3)
TOPIC: Final = 2
"""The type of a topic as a resource."""

TIMEOUT_MS: Final = 60_000
HEARTBEAT_S: Final = 2.0
TOPICS, PARTITIONS = 100, 1_000
WRITERS: Final = 16
LOOK_S: Final = 0.01

SETTINGS: Final = {
    "broker.session.timeout.ms": "600000",  # no broker is fenced: the records of that are no work of idle controllers
}

MAKES: Final[Mapping[str, Make]] = {"odradek": ODRADEK, "kafka": APACHE}

R = TypeVar("R")


class Size(NamedTuple):
    """The duration or the extent of each part of the measurement."""

    idle_s: float
    changes_s: float
    topics: int
    kills: int
    snapshot_bytes: int
    """Bytes of metadata after which a controller makes a snapshot."""


class ThreeControllers:
    """A quorum of three controller processes of one make."""

    def __init__(self, make: Make, work: Path) -> None:
        self._make = make
        self.addresses = {node_id: Address("127.0.0.1", free_port()) for node_id in NODES}
        self.nodes = {node_id: self._node(node_id, work) for node_id in NODES}
        self._work = work

    def _node(self, node_id: int, work: Path) -> ClusterProcess:
        file = work / f"{node_id}.properties"
        log = work / f"{node_id}.log"
        return ClusterProcess(
            str(node_id), log, lambda: self._make.command(file, is_controller=False), self._make.ready
        )

    def lay_out(self, snapshot_bytes: int) -> None:
        """Formats all nodes. Raises Unavailable."""
        self._make.prepare()
        addresses = self.addresses
        voters = ",".join(f"{node_id}@{addresses[node_id]}:{directory}" for node_id, directory in NODES.items())
        for node_id, address in addresses.items():
            settings = {
                "process.roles": "controller",
                "node.id": str(node_id),
                "listeners": f"CONTROLLER://{address}",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.bootstrap.servers": ",".join(map(str, addresses.values())),
                "log.dirs": str(self._work / str(node_id)),
                "metadata.log.max.record.bytes.between.snapshots": str(snapshot_bytes),
                **SETTINGS,
            }
            file = write_properties(self._work / f"{node_id}.properties", settings)
            self._make.format(file, "--initial-controllers", voters)

    def start(self) -> None:
        """Starts all nodes, and waits until they are ready. Raises NotRunning."""
        for node in self.nodes.values():
            node.start()
        for node in self.nodes.values():
            node.wait_until_ready()

    def snapshots(self, node_id: int) -> int:
        """Returns the number of a node's snapshots, except for that of its formatting."""
        found = (self._work / str(node_id)).glob("*/*.checkpoint")
        return sum(not file.name.startswith("0" * 20) for file in found)


class ActiveClient:
    """Sends requests to whichever controller is active."""

    def __init__(self, quorum: ThreeControllers) -> None:
        self._addresses = quorum.addresses
        self._clock = SystemClock()
        self._connections: dict[int, Connection] = {}
        self.active = next(iter(NODES))

    async def ask(self, request: object, response: type[R], code: Callable[[R], int]) -> R:
        """Returns the answer of the active controller, for which it looks until there is one."""
        nodes = itertools.cycle(NODES)
        while True:
            node_id = self.active  # another request may change it meanwhile
            try:
                answer = await (await self._connection(node_id)).send(request, response, timeout_ms=TIMEOUT_MS)
            except (PeerError, OSError):
                self._connections.pop(node_id, None)
            else:
                found = code(answer)
                if found == ErrorCode.NONE:
                    return answer
                if found not in (ErrorCode.NOT_CONTROLLER, ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT):
                    raise RuntimeError(f"{error_code(found).name} answers {request!r:.200}")
            if self.active == node_id:
                self.active = next(nodes)
            await asyncio.sleep(LOOK_S)

    async def _connection(self, node_id: int) -> Connection:
        connection = self._connections.get(node_id)
        if connection is None or not connection.is_ready:
            connection = await connect(self._addresses[node_id], Settings(), self._clock, timeout_ms=1_000)
            self._connections[node_id] = connection
        return connection

    async def close(self) -> None:
        for connection in self._connections.values():
            connection.abort()


class HeartbeatingBroker:
    """A broker that only registers and sends heartbeats."""

    def __init__(self, client: ActiveClient, broker_id: int) -> None:
        self._client, self._broker_id = client, broker_id
        self._epoch = -1

    async def register(self) -> None:
        hello = ApiVersionsRequest(client_software_name="bench", client_software_version="1")
        levels = await self._client.ask(hello, ApiVersionsResponse, lambda answer: answer.error_code)
        request = BrokerRegistrationRequest(
            broker_id=self._broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=self._broker_id.to_bytes(16),
            listeners=[Listener(name="PLAINTEXT", host="127.0.0.1", port=self._broker_id, security_protocol=0)],
            features=[  # it supports what the controller supports
                Feature(
                    name=level.name,
                    min_supported_version=level.min_version,
                    max_supported_version=level.max_version,
                )
                for level in levels.supported_features
            ],
            rack=None,
            log_dirs=[(1_000 + self._broker_id).to_bytes(16)],
        )
        answer = await self._client.ask(request, BrokerRegistrationResponse, lambda answer: answer.error_code)
        self._epoch = answer.broker_epoch
        while True:
            if not (await self._beat()).is_fenced:
                return
            await asyncio.sleep(LOOK_S)

    async def _beat(self) -> BrokerHeartbeatResponse:
        request = BrokerHeartbeatRequest(
            broker_id=self._broker_id,
            broker_epoch=self._epoch,
            current_metadata_offset=1 << 40,
            want_fence=False,
            want_shut_down=False,
        )
        return await self._client.ask(request, BrokerHeartbeatResponse, lambda answer: answer.error_code)

    async def live(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            await self._beat()


async def create(client: ActiveClient, topic: str, partitions: int) -> None:
    """Creates a topic."""
    places = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=[BROKERS[(index + turn) % 3] for turn in range(3)])
        for index in range(partitions)
    ]
    new = CreatableTopic(name=topic, num_partitions=-1, replication_factor=-1, assignments=places, configs=[])
    await client.ask(
        CreateTopicsRequest(topics=[new]), CreateTopicsResponse, lambda answer: answer.topics[0].error_code
    )


async def change(client: ActiveClient, topic: str, number: int) -> None:
    """Changes a config of a topic."""
    config = AlterableConfig(name="retention.ms", config_operation=0, value=str(1_000 + number))
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    await client.ask(request, IncrementalAlterConfigsResponse, lambda answer: answer.responses[0].error_code)


async def changes_per_second(quorum: ThreeControllers, duration_s: float) -> float:
    """Returns the changes of WRITERS connections, each of which sends one after another."""
    done, ends_s = 0, time.monotonic() + duration_s

    async def write(writer: int) -> None:
        nonlocal done
        client = ActiveClient(quorum)
        for number in itertools.count():
            await change(client, f"small-{writer}", number)
            if time.monotonic() > ends_s:
                break
            done += 1
        await client.close()

    await asyncio.gather(*(write(writer) for writer in range(WRITERS)))
    return done / duration_s


@asynccontextmanager
async def brokers(client: ActiveClient) -> AsyncIterator[None]:
    """Registers all brokers, and lets them live."""
    registered = [HeartbeatingBroker(client, broker_id) for broker_id in BROKERS]
    for broker in registered:
        await broker.register()
    tasks = [asyncio.ensure_future(broker.live()) for broker in registered]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()


async def idle(quorum: ThreeControllers, client: ActiveClient, duration_s: float) -> dict[str, float]:
    """Returns processor shares and memory of the active controller, and the means of the others."""
    before = {node_id: node.cpu_s() for node_id, node in quorum.nodes.items()}
    await asyncio.sleep(duration_s)
    cpu = {node_id: 100 * (node.cpu_s() - before[node_id]) / duration_s for node_id, node in quorum.nodes.items()}
    memory = {node_id: node.memory().private_bytes / MB for node_id, node in quorum.nodes.items()}
    return {
        "CPU of the active, %": cpu[client.active],
        "CPU of another, %": statistics.mean(cpu[node] for node in NODES if node != client.active),
        "memory of the active, MB": memory[client.active],
        "memory of another, MB": statistics.mean(memory[node] for node in NODES if node != client.active),
    }


async def restart(quorum: ThreeControllers, node_id: int) -> float:
    """Starts a controller, and returns the seconds until it has loaded its snapshot and the log after it."""
    began_s = time.monotonic()
    quorum.nodes[node_id].start()
    await asyncio.to_thread(quorum.nodes[node_id].wait_until_ready)
    return time.monotonic() - began_s


async def fail_over(quorum: ThreeControllers, client: ActiveClient, number: int) -> float:
    """Kills the active controller, and returns the seconds until the next change is made. Then starts it again."""
    killed = client.active
    quorum.nodes[killed].kill()
    began_s = time.monotonic()
    await change(client, "small-0", number)
    took_s = time.monotonic() - began_s
    await restart(quorum, killed)
    await asyncio.sleep(5)  # it catches up
    return took_s


async def measure(make: Make, work: Path, size: Size) -> dict[str, float]:
    """Returns the figures of one software."""
    figures: dict[str, float] = {}
    quorum = ThreeControllers(make, work)
    quorum.lay_out(size.snapshot_bytes)
    async with AsyncExitStack() as stack:
        stack.callback(lambda: [node.stop() for node in quorum.nodes.values()])
        await asyncio.to_thread(quorum.start)
        client = ActiveClient(quorum)
        stack.push_async_callback(client.close)
        await stack.enter_async_context(brokers(client))
        for writer in range(WRITERS):
            await create(client, f"small-{writer}", 1)
        await changes_per_second(quorum, size.changes_s)  # warms the JVM up
        figures["changes per second"] = await changes_per_second(quorum, size.changes_s)
        await asyncio.sleep(10)
        figures |= {f"idle: {name}": value for name, value in (await idle(quorum, client, size.idle_s)).items()}
        partitions = size.topics * PARTITIONS
        began_s = time.monotonic()
        for topic in range(size.topics):
            await create(client, f"large-{topic}", PARTITIONS)
        figures[f"creation of {partitions:,} partitions, s"] = time.monotonic() - began_s
        await asyncio.sleep(20)
        with_all = await idle(quorum, client, size.idle_s)
        figures |= {f"with {partitions:,} partitions: {name}": value for name, value in with_all.items()}
        other = next(node_id for node_id in NODES if node_id != client.active)
        quorum.nodes[other].stop()
        if not quorum.snapshots(other):
            raise RuntimeError(f"node {other} has no snapshot")
        figures["start of a controller with them, s"] = await restart(quorum, other)
        await asyncio.sleep(5)
        times_s = [await fail_over(quorum, client, number) for number in range(size.kills)]
        figures["kill of the active to the next change, median, s"] = statistics.median(times_s)
        figures["kill of the active to the next change, slowest, s"] = max(times_s)
    return figures


def table(results: Mapping[str, Mapping[str, float]]) -> str:
    """Returns the figures as a table in Markdown."""
    names = list(next(iter(results.values())))
    lines = [f"| | {' | '.join(results)} |", f"|---|{'---|' * len(results)}"]
    for name in names:
        cells = (f"{figures[name]:,.{0 if figures[name] >= 100 else 2}f}" for figures in results.values())
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.controllers", description=__doc__)
    parser.add_argument("--small", action="store_true", help="tiny sizes: tests the benchmark itself")
    parser.add_argument("--peers", nargs="+", choices=MAKES, default=[*MAKES], help="whose controllers (all)")
    options = parser.parse_args(arguments)
    size = Size(2, 2, 2, 1, 50_000) if options.small else Size(30, 10, TOPICS, 5, 3_000_000)
    results: dict[str, dict[str, float]] = {}
    for make in (MAKES[name] for name in options.peers):
        with tempfile.TemporaryDirectory(prefix="odradek-controllers-") as work:
            results[make.title] = asyncio.run(measure(make, Path(work), size))
        print(table(results), flush=True)


if __name__ == "__main__":
    main()
