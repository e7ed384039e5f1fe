"""Tests the way out when a majority of the controllers is lost for good: `odradek log metadata --only-voter`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from coordinator.cluster.quorum import FOLDER
from coordinator.cluster.quorum_state import QUORUM_STATE
from tests.interop.brokers import CLUSTER_ID, Odradek
from tests.interop.either_node import EitherNode
from tests.interop.processes import run
from tests.interop.several_controllers import DIRECTORIES, SeveralControllers, leader_of
from tests.interop.voters import SOON_S, Operator
from tests.waiting import eventually

BROKER = 1


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[SeveralControllers]:
    """Three controllers that were killed together, and a broker that still runs and has a topic."""
    quorum = SeveralControllers(tmp_path)
    quorum.join(BROKER)
    try:
        quorum.start()
        create(quorum, "before")
        for node in quorum.nodes.values():
            node.kill9()
        yield quorum
    finally:
        quorum.forget()


def create(quorum: SeveralControllers, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": quorum.bootstrap})
    new = [NewTopic(name, 1, 1)]
    admin.create_topics(new, operation_timeout=SOON_S, request_timeout=SOON_S)[name].result(SOON_S)


def format_anew(node: EitherNode) -> None:
    """Replaces a controller's disk by an empty one, formatted to join a quorum."""
    shutil.rmtree(node.data)
    file = str(node.data.with_name(f"{node.data.name}.properties"))
    run([Odradek.program, "format", "-t", CLUSTER_ID, "-c", file, "--no-initial-controllers"])


def metadata_of(node: EitherNode, *flags: str) -> tuple[int, str]:
    """Returns the exit code and the output of `odradek log metadata`."""
    ended = run([Odradek.program, "log", "metadata", *flags, str(node.data)], check=False)
    return ended.returncode, (ended.stdout + ended.stderr).decode()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("copy_of", ["a controller", "a broker"])
def test_one_copy_of_the_log_becomes_a_quorum_of_three_again(quorum: SeveralControllers, copy_of: str) -> None:
    first, *others = quorum.nodes.values()
    if copy_of == "a broker":
        format_anew(first)
        shutil.copytree(quorum.brokers[BROKER].data / FOLDER, first.data / FOLDER)
        (first.data / FOLDER / QUORUM_STATE).unlink()
    for node in others:
        format_anew(node)
    assert "voters: 101, 102, 103\n" in metadata_of(first)[1]
    refused = metadata_of(first, "--accept")
    assert refused[0] == 1
    assert "the others have its records, so replace its disk instead" in refused[1]
    status, output = metadata_of(first, "--only-voter")
    assert status == 0, output
    assert "this controller is the only voter: the next start continues at offset" in output

    first.start()
    operator = Operator(quorum.bootstrap)
    eventually(lambda: set(operator.directories()), {first.node_id}, within_s=SOON_S)
    create(quorum, "after")
    for node in others:
        operator.add(node, node.node_id)
    assert set(operator.directories()) == set(DIRECTORIES)
    first.kill9()
    create(quorum, "without-the-first")
    assert leader_of(quorum.bootstrap) != first.node_id
    admin = AdminClient({"bootstrap.servers": quorum.bootstrap})
    names = {"before", "after", "without-the-first"}
    eventually(lambda: names <= admin.list_topics(timeout=SOON_S).topics.keys(), True)


def test_only_a_former_voter_becomes_the_only_voter(quorum: SeveralControllers) -> None:
    broker = quorum.brokers[BROKER]
    assert "in use by a broker" in metadata_of(broker, "--only-voter")[1]
    broker.kill9()
    before = sorted((file.name, file.read_bytes()) for file in (broker.data / FOLDER).glob("*.log"))
    status, output = metadata_of(broker, "--only-voter")
    assert status == 1
    assert "node 1 is not among the voters 101, 102, 103" in output
    assert sorted((file.name, file.read_bytes()) for file in (broker.data / FOLDER).glob("*.log")) == before
