"""Compares the registry in Apache ZooKeeper with Kafka 1.1.1: znodes, their permissions, and generated ids."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from tests.interop.brokers import CLUSTER_ID, Odradek
from tests.interop.processes import free_port, run
from tests.interop.zookeeper import (
    SOON_S,
    OldKafka,
    ZooKeeper,
    facing,
    old_program,
    old_tool,
    started,
    until,
    znodes,
)

pytestmark = [pytest.mark.zookeeper, pytest.mark.odradek_only]

DIGEST = "operator:secret"
VARYING = ("timestamp", "port", "endpoints", "id")
"""Fields of a broker, a controller and a cluster that differ in each run: only their types are compared."""

BLOCK_OF_IDS = "/latest_producer_id_block"
"""Producer ids come from the metadata log here."""


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    server = ZooKeeper(tmp_path_factory.mktemp("zookeeper") / "zookeeper")
    server.start()
    yield server
    server.forget()


def content(data: bytes | None) -> object:
    """Returns the content of a znode, without the parts that differ in each run."""
    if not data:
        return None
    value = json.loads(data)
    return {name: _typed(name, one) for name, one in value.items()} if isinstance(value, dict) else value


def _typed(name: str, value: Any) -> object:
    if name not in VARYING:
        return value
    return [type(one).__name__ for one in value] if isinstance(value, list) else type(value).__name__


def paths(client: KazooClient) -> Iterator[str]:
    level = ["/"]
    while level:
        path = level.pop()
        yield path
        level += [f"{path.rstrip('/')}/{child}" for child in client.get_children(path)]


def tree(client: KazooClient) -> dict[str, tuple[object, bool]]:
    """Returns each znode's content, and True if it ends with a session."""
    nodes = {path: client.get(path) for path in paths(client) if path != BLOCK_OF_IDS}
    return {path: (content(data), stat.ephemeralOwner != 0) for path, (data, stat) in nodes.items()}


def act(connect: str, bootstrap: str) -> list[object]:
    """Returns the znodes after each action of old tools and clients, and the clients' answers."""
    seen: list[object] = []
    with znodes(connect) as client:

        def tool(name: str, *arguments: str) -> None:
            old_tool("1.1.1", f"kafka.admin.{name}", "--zookeeper", connect, *arguments)

        def see(*paths: str, there: bool = True) -> None:
            until(lambda: all((client.exists(path) is not None) is there for path in paths))
            seen.append(tree(client))

        see("/controller", "/controller_epoch")  # Kafka makes one after the other
        tool("TopicCommand", "--create", "--topic", "t", "--partitions", "2", "--replication-factor", "1")
        see(*(f"/brokers/topics/t/partitions/{index}/state" for index in range(2)))
        entity = ("--entity-type", "topics", "--entity-name", "t")
        tool("ConfigCommand", "--alter", *entity, "--add-config", "retention.ms=60000,cleanup.policy=delete")
        see("/config/changes/config_change_0000000000")
        tool("TopicCommand", "--alter", "--topic", "t", "--partitions", "3")
        see("/brokers/topics/t/partitions/2/state")
        configs = ("--config", "segment.bytes=2000000")
        tool("TopicCommand", "--create", "--topic", "u", "--partitions", "1", "--replication-factor", "1", *configs)
        see("/brokers/topics/u/partitions/0/state")
        tool("ConfigCommand", "--alter", *entity, "--delete-config", "cleanup.policy")
        see("/config/changes/config_change_0000000001")
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce("made-by-a-client", b"1")
        assert producer.flush(SOON_S) == 0
        see("/brokers/topics/made-by-a-client/partitions/0/state")
        seen.append(run(old_program("0.8.2.2", "OldOffsets.java", *bootstrap.split(":"), "g", "u")).stdout.decode())
        see("/consumers/g/offsets/u/0")
        tool("TopicCommand", "--delete", "--topic", "t")
        see("/admin/delete_topics/t", there=False)
        tool("PreferredReplicaLeaderElectionCommand")
        until(lambda: not client.exists("/admin/preferred_replica_election"))
        seen.append(sorted(paths(client)))  # that Kafka raises the epochs of leaders that stay, too
    return seen


def test_znodes_are_those_of_kafka_under_the_same_actions(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    with znodes(zookeeper.address) as client:
        client.create("/theirs")  # Kafka makes it too, and is looked for there by the test before it has
    theirs = OldKafka(tmp_path / "theirs", f"{zookeeper.address}/theirs", "1.1.1")
    theirs.start()
    kafkas = act(theirs.connect, theirs.bootstrap)
    theirs.forget()
    ours = started(tmp_path / "ours", f"{zookeeper.address}/ours", odradek__zookeeper__broker__version="4")
    for number, (own, kafka) in enumerate(zip(act(f"{zookeeper.address}/ours", ours.bootstrap), kafkas, strict=True)):
        assert own == kafka, f"after action {number}"


def refuses(client: KazooClient, path: str) -> bool:
    """True if a client may neither write a znode nor create another below it."""
    with pytest.raises(NoAuthError):
        client.set(path, client.get(path)[0])
    with pytest.raises(NoAuthError):
        client.create(f"{path.rstrip('/')}/intruder")
    return True


def test_with_set_acl_only_the_digests_user_changes_znodes(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    connect = f"{zookeeper.address}/guarded/kafka"
    guarded = {"zookeeper__set__acl": "true", "odradek__zookeeper__digest": DIGEST}
    broker = started(tmp_path / "data", connect, **guarded)
    user = "digest:operator:x"  # the digest is shown to nobody else
    with znodes(connect) as client, znodes(zookeeper.address) as above:
        for path in paths(client):
            acls = {f"{acl.id.scheme}:{acl.id.id}": acl.perms for acl in client.get_acls(path)[0]}
            assert acls == ({"world:anyone": 31} if path == "/consumers" else {user: 31, "world:anyone": 1}), path
        for path in ("/", "/brokers/topics", "/config/changes", "/admin/delete_topics"):
            assert refuses(client, path)
        for path in ("/controller", "/brokers/ids/1"):  # who could delete them could stop the cluster
            with pytest.raises(NoAuthError):
                client.delete(path)
        with pytest.raises(NoAuthError):
            above.create("/guarded/other")
        client.create("/consumers/g/offsets/t/0", b"7", makepath=True)  # consumers are nobody in particular
        client.add_auth("digest", DIGEST)
        client.create("/brokers/topics/t", b'{"version":1,"partitions":{"0":[1]}}')
        until(lambda: client.exists("/brokers/topics/t/partitions/0/state"), [broker])
    assert broker.stop() == 0

    intruder = Odradek(
        tmp_path / "other", facing(connect, zookeeper__set__acl="true", odradek__zookeeper__digest="x:y")
    )
    with pytest.raises(AssertionError, match="ZooKeeper refuses: NoAuthError"):
        intruder.start()


def test_zookeeper_numbers_brokers_as_it_does_kafkas(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    with znodes(zookeeper.address) as client:
        client.create("/numbered")
    generated = {"broker.id": "-1", "broker.id.generation.enable": "true", "offsets.topic.num.partitions": "1"}
    theirs = OldKafka(tmp_path / "theirs", f"{zookeeper.address}/numbered", "1.1.1", generated, node_id=1001)
    theirs.start()
    theirs.forget()
    with znodes(f"{zookeeper.address}/numbered") as client:
        until(lambda: not client.get_children("/brokers/ids"))
        number = client.get("/brokers/seqid")[1].version
    assert number == 1

    connect = f"{zookeeper.address}/numbered-here"
    ours = Odradek(tmp_path / "ours", facing(connect) | generated)
    with znodes(zookeeper.address) as client:
        for _ in range(2):  # its directory keeps the number
            ours.start()
            until(lambda: client.exists("/numbered-here/brokers/ids/1001"), [ours])
            assert ours.stop() == 0
        settings = facing(connect) | generated | {"process.roles": "broker", "log.dirs": str(tmp_path / "formatted")}
        settings["controller.quorum.bootstrap.servers"] = f"127.0.0.1:{free_port()}"
        words = [word for name, text in settings.items() for word in ("--set", f"{name}={text}")]
        run([Odradek.program, "format", "-t", CLUSTER_ID, *words])
        assert "node.id=1002" in run([Odradek.program, "info", *words]).stdout.decode()
        assert client.get("/numbered-here/brokers/seqid")[1].version == 2
