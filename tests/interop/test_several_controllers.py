"""Tests three controllers of Odradek as processes: any one of them may die, and no committed change is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.own_quorum import OdradekNode
from tests.interop.processes import run
from tests.interop.several_controllers import DIRECTORIES, SeveralControllers, described, leader_of
from tests.waiting import eventually

pytestmark = pytest.mark.cluster

SOON_S = 60

SMALL_SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "2000"}


class Cluster:
    """Three controllers and a broker."""

    def __init__(self, quorum: SeveralControllers, broker: OdradekNode) -> None:
        self.quorum = quorum
        self.broker = broker

    @property
    def topics(self) -> list[str]:
        """The topics that the broker knows."""
        metadata = AdminClient({"bootstrap.servers": self.broker.bootstrap}).list_topics(timeout=SOON_S)
        return sorted(metadata.topics)

    def create(self, *names: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        new = [NewTopic(name, 1, 1) for name in names]
        for future in admin.create_topics(new, operation_timeout=SOON_S, request_timeout=SOON_S).values():
            future.result(SOON_S)

    def lags(self) -> dict[int, object]:
        """Returns the lag of each voter; None if it is unknown."""
        replicas = described(self.broker.bootstrap)["replicas"]
        assert isinstance(replicas, list)
        return {replica["node"]: replica["lag"] for replica in replicas if replica["role"] != "observer"}


@pytest.fixture(params=["in the log", "static"])
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    quorum = SeveralControllers(tmp_path, settings=SMALL_SNAPSHOTS, are_static=request.param == "static")
    broker = quorum.broker(1)
    try:
        quorum.start()
        broker.start()
        yield Cluster(quorum, broker)
    finally:
        broker.stop()
        broker.forget()
        quorum.stop()


def test_every_controller_may_die_once_and_no_change_is_lost(cluster: Cluster) -> None:
    expected = []
    for round_number in range(len(DIRECTORIES)):
        leader_id = leader_of(cluster.broker.bootstrap)
        before, after = f"before-{round_number}", f"after-{round_number}"
        cluster.create(before)
        cluster.quorum.nodes[leader_id].kill9()
        cluster.create(after)
        expected += [before, after]
        assert leader_of(cluster.broker.bootstrap) != leader_id
        cluster.quorum.nodes[leader_id].start()
        eventually(cluster.lags, dict.fromkeys(DIRECTORIES, 0), within_s=SOON_S)
    eventually(lambda: cluster.topics, sorted(expected), within_s=SOON_S)


def test_a_controller_that_stops_hands_over(cluster: Cluster) -> None:
    leader_id = leader_of(cluster.broker.bootstrap)
    cluster.create("before")
    assert cluster.quorum.nodes[leader_id].stop() == 0
    cluster.create("after")
    assert leader_of(cluster.broker.bootstrap) != leader_id
    eventually(lambda: cluster.topics, ["after", "before"], within_s=SOON_S)


def test_all_controllers_die_and_come_back_with_every_change(cluster: Cluster) -> None:
    names = [f"topic-{number}" for number in range(50)]
    cluster.create(*names)
    for node in cluster.quorum.nodes.values():
        node.kill9()
    cluster.quorum.start()
    cluster.create("more")
    eventually(lambda: cluster.topics, sorted([*names, "more"]), within_s=SOON_S)


def test_without_a_majority_nothing_is_changed(cluster: Cluster) -> None:
    leader_id = leader_of(cluster.broker.bootstrap)
    others = [node for node_id, node in cluster.quorum.nodes.items() if node_id != leader_id]
    for node in others:
        node.kill9()
    admin = AdminClient({"bootstrap.servers": cluster.broker.bootstrap})
    created = admin.create_topics([NewTopic("lonely", 1, 1)], operation_timeout=3, request_timeout=3)["lonely"]
    assert created.exception(SOON_S) is not None
    assert "lonely" not in cluster.topics
    for node in others:
        node.start()
    cluster.create("later")
    eventually(lambda: "later" in cluster.topics, True, within_s=SOON_S)


def test_a_controller_that_lost_its_disk_fetches_a_snapshot(cluster: Cluster) -> None:
    leader_id = leader_of(cluster.broker.bootstrap)
    follower = next(node for node_id, node in cluster.quorum.nodes.items() if node_id != leader_id)
    follower.kill9()
    run(["rm", "-r", str(follower.data)])
    for number in range(20):
        cluster.create(f"topic-{number}")
    follower.start()  # formatted again with the same directory id, which no operator of a real cluster should do
    eventually(cluster.lags, dict.fromkeys(DIRECTORIES, 0), within_s=SOON_S)
    assert any(file.suffix == ".checkpoint" for file in (follower.data / "__cluster_metadata-0").iterdir())
