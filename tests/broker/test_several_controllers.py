"""Tests three controllers in this process, which reach each other over sockets: elections, standby controllers, and the
hand-over of a controller that stops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
import uvloop

from broker.config import BrokerConfig
from broker.metadata.elected_controller import ElectedController
from broker.metadata.forwarding import envelope
from broker.metadata.opening import EPOCHS_AHEAD, accept_loss
from cli.exits import FAILED
from coordinator.cluster.brokers.features import LATEST_METADATA_VERSION, bootstrap_records
from coordinator.cluster.controller import Asker
from coordinator.cluster.formatting import NewMetadata, format_directory
from coordinator.cluster.quorum_state import read_quorum_state, write_quorum_state
from coordinator.cluster.voters import InitialVoter, voters_record
from programs.run.controller_server import ControllerServer
from protocol.codec import decode
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.envelope import EnvelopeResponse
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from protocol.messages.vote import VoteRequest, VoteResponse
from protocol.metadata_records.settings import ConfigRecord
from protocol.types import Uuid
from storage.disk import OsDisk
from tests.broker.controllers import formatted, is_active, serving_controller
from tests.broker.test_controller_listener import CLIENT, Controller
from tests.clock import running_clock
from tests.interop.processes import free_port
from tests.storage.bad_disk import BROKEN, FULL, BadDisk
from tests.waiting import until

IDS = (1, 2, 3)
TIMES = {
    "controller.quorum.election.timeout.ms": "100",
    "controller.quorum.election.backoff.max.ms": "100",
    "controller.quorum.fetch.timeout.ms": "1000",
}
RESPONSE_HEADER_BYTES = 5
"""A correlation id and no tagged fields."""

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def directory_id(node_id: int) -> Uuid:
    """Returns the id of the directory that `formatted` makes for a node."""
    return f"directory-of-{node_id:03}".encode()


class Quorum:
    """Three controllers, which are voters of the configuration unless they are added to the log."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._addresses = {node_id: f"127.0.0.1:{free_port()}" for node_id in IDS}
        self.servers: dict[int, ControllerServer] = {}
        self.disks: dict[int, BadDisk] = {}

    def endpoint(self, node_id: int) -> tuple[str, int]:
        host, _, port = self._addresses[node_id].partition(":")
        return host, int(port)

    async def grow(self, node_id: int) -> ControllerServer:
        """Starts a controller of a quorum whose first voter is in the log, and whose other nodes join later."""
        folder = self.directory(node_id)
        formatted(folder, node_id)
        if node_id == IDS[0]:
            voter = InitialVoter(node_id, *self.endpoint(node_id), directory_id(node_id))
            new = NewMetadata(bootstrap_records(), LATEST_METADATA_VERSION)
            format_directory(str(folder), new, voters_record([voter], "CONTROLLER"), OsDisk(), 0)
        servers = ",".join(self._addresses.values())
        return await self.start(node_id, controller_quorum_voters="", controller_quorum_bootstrap_servers=servers)

    async def start(self, node_id: int, **options: str) -> ControllerServer:
        """Starts a controller; `options` are by attribute names."""
        config = {
            "process.roles": "controller",
            "node.id": str(node_id),
            "listeners": f"CONTROLLER://{self._addresses[node_id]}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": ",".join(f"{one}@{address}" for one, address in self._addresses.items()),
            "log.dirs": formatted(self.directory(node_id), node_id),
            **TIMES,
            **{name.replace("_", "."): value for name, value in options.items()},
        }
        server = self.servers[node_id] = ControllerServer(BrokerConfig.parse(config), asyncio.Event())
        server._disk = self.disks[node_id] = BadDisk()
        await server.start()
        return server

    def directory(self, node_id: int) -> Path:
        return self._folder / f"node-{node_id}"

    async def stop(self, node_id: int) -> None:
        server = self.servers.pop(node_id)
        await server.stop()
        assert server.exit_code == 0

    async def active(self) -> int:
        """Returns the node whose controller decides, once there is one."""
        await until(lambda: any(map(is_active, self.servers.values())))
        (active,) = (node_id for node_id, server in self.servers.items() if is_active(server))
        return active


def with_a_quorum(test: Callable[[Quorum], Coroutine[None, None, None]]) -> Callable[[Path], None]:
    """Runs a test on the event loop of production, whose sockets write into a listener's buffers."""

    async def whole(quorum: Quorum) -> None:
        try:
            await test(quorum)
        finally:
            await asyncio.gather(*(quorum.stop(node_id) for node_id in list(quorum.servers)))

    def run(tmp_path: Path) -> None:
        uvloop.run(whole(Quorum(tmp_path)))

    return run


async def started(quorum: Quorum) -> tuple[int, list[int]]:
    """Starts all controllers. Returns the active node and the others."""
    for node_id in IDS:
        await quorum.start(node_id)
    active = await quorum.active()
    return active, [node_id for node_id in IDS if node_id != active]


async def allocate(server: ControllerServer) -> int:
    """Returns the first producer id of a new block."""
    request = AllocateProducerIdsRequest(broker_id=-1, broker_epoch=-1)
    answer = await server.part.cluster.controller.submit(request, AllocateProducerIdsResponse, Asker())
    return answer.producer_id_start


@with_a_quorum
async def test_one_of_three_is_active_and_the_others_say_so(quorum: Quorum) -> None:
    active, standby = await started(quorum)
    for node_id in standby:
        await until(lambda node_id=node_id: quorum.servers[node_id].part.replica.leader_id == active)  # type: ignore[misc]
        with pytest.raises(KafkaError) as raised:
            await allocate(quorum.servers[node_id])
        assert raised.value.code is ErrorCode.NOT_CONTROLLER
        with pytest.raises(KafkaError) as raised:
            quorum.servers[node_id].part.replica.describe()
        assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    described = quorum.servers[active].part.replica.describe()
    assert sorted(voter.key.node_id for voter in described.voters) == list(IDS)


@with_a_quorum
async def test_every_controller_registers_itself(quorum: Quorum) -> None:
    await started(quorum)
    for server in quorum.servers.values():
        await until(lambda server=server: sorted(server.part.cluster.image.controllers) == list(IDS))  # type: ignore[misc]


@with_a_quorum
async def test_a_stop_hands_over_and_the_next_goes_on_from_the_committed_state(quorum: Quorum) -> None:
    active, _ = await started(quorum)
    image = quorum.servers[active].part.cluster.image
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1, assignments=[], configs=[])]
    )
    controller = quorum.servers[active].part.cluster.controller
    answer = await controller.submit(request, CreateTopicsResponse, Asker())
    assert answer.topics[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR, "there are no brokers"
    offset = image.offset
    await quorum.stop(active)
    successor = await quorum.active()
    assert successor != active
    assert quorum.servers[successor].part.cluster.image.offset > offset
    epoch = quorum.servers[successor].part.log.epoch
    state = read_quorum_state(OsDisk(), str(quorum.directory(successor) / "__cluster_metadata-0"))
    assert (state.leader_id, state.leader_epoch, state.voters) == (successor, epoch, IDS)
    await quorum.start(active)
    log = quorum.servers[successor].part.log
    await until(lambda: quorum.servers[active].part.log.high_watermark >= log.high_watermark > offset)


@with_a_quorum
async def test_without_a_majority_no_request_is_authorized_by_the_lack_of_entries(quorum: Quorum) -> None:
    server = await quorum.start(
        1, authorizer_class_name=STANDARD_AUTHORIZER, allow_everyone_if_no_acl_found="true", super_users="User:admin"
    )
    alone = Controller(server)
    answer = await alone.ask(VoteRequest(cluster_id=None, voter_id=1, topics=[]), VoteResponse)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def has_caught_up(leader: ControllerServer, node_id: int) -> bool:
    """True if an observer has had all of the leader's records, which a node must before it becomes a voter."""
    observers = leader.part.replica.describe().observers
    return any(observer.key.node_id == node_id and observer.caught_up_ms > 0 for observer in observers)


@with_a_quorum
async def test_a_quorum_grows_and_its_first_voter_leaves(quorum: Quorum) -> None:
    first = await quorum.grow(1)
    assert await quorum.active() == 1
    for node_id in (2, 3):
        added = await quorum.grow(node_id)
        await until(lambda node_id=node_id: has_caught_up(first, node_id))  # type: ignore[misc]
        assert not added.part.replica.raft.is_voter
        host, port = quorum.endpoint(node_id)
        request = AddRaftVoterRequest(
            cluster_id=None, timeout_ms=30_000, voter_id=node_id, voter_directory_id=directory_id(node_id),
            listeners=[Listener(name="CONTROLLER", host=host, port=port)], ack_when_committed=True,
        )  # fmt: skip
        answer = await Controller(first).ask(request, AddRaftVoterResponse)
        assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    assert sorted(voter.key.node_id for voter in first.part.replica.describe().voters) == list(IDS)
    remove = RemoveRaftVoterRequest(cluster_id=None, voter_id=1, voter_directory_id=directory_id(1))
    forwarded = await Controller(first).ask(envelope(remove, 0, CLIENT), EnvelopeResponse)  # as a broker does
    assert forwarded.error_code == ErrorCode.NONE, "the next leader would not find the voter"
    assert forwarded.response_data is not None
    removed, _ = decode(RemoveRaftVoterResponse, 0, forwarded.response_data[RESPONSE_HEADER_BYTES:])
    assert removed.error_code == ErrorCode.NONE
    await until(lambda: any(is_active(quorum.servers[node_id]) for node_id in (2, 3)))
    assert not is_active(first)


async def configure(server: ControllerServer, value: str) -> None:
    """Writes a config of a topic, as the active controller."""
    controller = server.part.cluster.controller
    assert isinstance(controller, ElectedController)
    assert controller.active is not None
    record = ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value=value)
    await controller.active.write([record])


def configured(server: ControllerServer) -> str | None:
    return server.part.cluster.image.topic_configs("orders").get("retention.ms")


def fill(disk: BadDisk) -> None:
    """Lets every later write fail."""
    disk.fault = lambda call, _: FULL if call == "write" else None


@with_a_quorum
async def test_a_leader_whose_disk_is_full_hands_over_and_follows_when_there_is_room(quorum: Quorum) -> None:
    active, others = await started(quorum)
    await configure(quorum.servers[active], "1")
    fill(quorum.disks[active])
    with pytest.raises(KafkaError):
        await configure(quorum.servers[active], "2")
    await until(lambda: any(is_active(quorum.servers[node_id]) for node_id in others))
    leader = await quorum.active()
    assert leader != active
    await configure(quorum.servers[leader], "3")
    quorum.disks[active].fault = lambda call, path: None
    await until(lambda: configured(quorum.servers[active]) == "3")
    assert quorum.servers[active].part.log.failed is None


@with_a_quorum
async def test_the_only_voter_rejects_changes_while_its_disk_is_full(quorum: Quorum) -> None:
    server = await quorum.grow(IDS[0])
    await until(lambda: is_active(server))
    epoch = server.part.log.epoch
    fill(quorum.disks[IDS[0]])
    with pytest.raises(KafkaError, match="full"):
        await configure(server, "1")
    assert configured(server) is None
    quorum.disks[IDS[0]].fault = lambda call, path: None
    await configure(server, "2")
    assert (configured(server), server.part.log.epoch) == ("2", epoch)


@with_a_quorum
async def test_a_voter_of_the_configuration_goes_on_alone_after_the_loss_of_the_others(quorum: Quorum) -> None:
    active, _ = await started(quorum)
    await configure(quorum.servers[active], "1")
    epoch = quorum.servers[active].part.log.epoch
    for node_id in IDS:
        await quorum.stop(node_id)
    folder = str(quorum.directory(active))
    accept_loss([folder], folder, disk=OsDisk(), clock=running_clock(), only_voter=True)
    host, port = quorum.endpoint(active)
    server = await quorum.start(active, controller_quorum_voters=f"{active}@{host}:{port}")
    await until(lambda: is_active(server))
    assert configured(server) == "1"
    assert server.part.log.epoch > epoch + EPOCHS_AHEAD
    await configure(server, "2")
    assert server.part.replica.raft.voters.ids == [active]


def break_disk(server: ControllerServer, disk: BadDisk) -> None:
    disk.fault = lambda call, _: BROKEN if call == "write" else None


def break_core(server: ControllerServer, disk: BadDisk) -> None:
    """Plants a fault of the code."""

    def propose(batch: bytearray, now_ms: int) -> int:
        raise KeyError(len(batch))

    server.part.replica.raft.propose = propose  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("cause", "code", "reason"),
    [
        (break_disk, ErrorCode.KAFKA_STORAGE_ERROR, "Input/output error"),
        (break_core, ErrorCode.UNKNOWN_SERVER_ERROR, "a fault of this node's part in the quorum: KeyError: "),
    ],
)
def test_a_controller_stops_after_a_failed_disk_or_a_fault_and_says_which(
    tmp_path: Path, cause: Callable[[ControllerServer, BadDisk], None], code: ErrorCode, reason: str
) -> None:
    @with_a_quorum
    async def run(quorum: Quorum) -> None:
        active, others = await started(quorum)
        server = quorum.servers.pop(active)
        cause(server, quorum.disks[active])
        with pytest.raises(KafkaError, match=r"NOT_CONTROLLER|no longer leads"):
            await configure(server, "1")
        failed = server.part.log.failed
        assert failed is not None
        assert (failed.code, reason in failed.message) == (code, True), failed.message
        await until(lambda: any(is_active(quorum.servers[node_id]) for node_id in others))
        quorum.disks[active].fault = lambda call, path: None
        await server.stop()
        assert server.exit_code == FAILED

    run(tmp_path)


@pytest.mark.parametrize(("ahead", "is_known", "starts"), [(1, False, True), (2, False, False), (2, True, True)])
async def test_the_only_voter_does_not_lead_a_log_that_ends_epochs_before_its_quorum_state(
    tmp_path: Path, ahead: int, is_known: bool, starts: bool
) -> None:
    """It stores its election before the first record of its epoch, so one epoch may be missing after a crash. More may
    be missing if it is known up to which offset the log was flushed: the disk was full."""
    async with serving_controller(tmp_path) as server:
        epoch = server.part.log.epoch
    folder = str(tmp_path / "__cluster_metadata-0")
    if not is_known:
        (tmp_path / "__cluster_metadata-0" / "flushed-offset").unlink()
    write_quorum_state(OsDisk(), folder, read_quorum_state(OsDisk(), folder)._replace(leader_epoch=epoch + ahead))
    if starts:
        async with serving_controller(tmp_path) as server:
            assert server.part.log.epoch == epoch + ahead + 1
    else:
        with pytest.raises(KafkaError, match=f"in epoch {epoch}, but quorum-state has epoch {epoch + ahead}"):
            async with serving_controller(tmp_path):
                pass
