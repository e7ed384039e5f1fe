"""The registry in Apache ZooKeeper: who may change it, and generated ids beside those of Kafka 1.1.1."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from tests.interop.brokers import CLUSTER_ID, Odradek
from tests.interop.processes import free_port, run
from tests.interop.zookeeper import (
    OldKafka,
    ZooKeeper,
    facing,
    started,
    until,
    znodes,
)

pytestmark = [pytest.mark.zookeeper, pytest.mark.odradek_only]

DIGEST = "operator:secret"


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    server = ZooKeeper(tmp_path_factory.mktemp("zookeeper") / "zookeeper")
    server.start()
    yield server
    server.forget()


def paths(client: KazooClient) -> Iterator[str]:
    level = ["/"]
    while level:
        path = level.pop()
        yield path
        level += [f"{path.rstrip('/')}/{child}" for child in client.get_children(path)]


def refuses(client: KazooClient, path: str) -> bool:
    """Whether a client may neither write a znode nor make another below it."""
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
