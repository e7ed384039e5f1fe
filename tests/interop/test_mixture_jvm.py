"""Tests clusters of Odradek and Apache Kafka in every mixture, with faults under load: acknowledged records stay at
their offsets, and all replicas have them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.interop.either_node import Make
from tests.interop.faults import Faults, summary
from tests.interop.load import Load
from tests.interop.mixture import Cluster
from tests.interop.several_controllers import leader_of
from tests.waiting import eventually

TOPIC = "under-load"
ASSIGNMENTS = [list(order) for order in itertools.permutations((1, 2, 3))]
"""Each broker leads two partitions, and follows every other broker."""


class Mixture(NamedTuple):
    """The kinds of the brokers and of their controllers."""

    brokers: tuple[Make, ...]
    controllers: tuple[Make, ...]

    def __str__(self) -> str:
        brokers, controllers = ("".join(one.value[0] for one in kinds) for kinds in self)
        return f"{brokers}-under-{controllers}"


OURS, THEIRS = Make.ODRADEK, Make.APACHE
BROKERS = [(OURS, OURS, OURS), (OURS, OURS, THEIRS), (OURS, THEIRS, THEIRS)]
"""With two brokers of each kind, both kinds lead and follow both kinds."""
CONTROLLERS = [(OURS,), (THEIRS,), (OURS, OURS, OURS)]
MIXTURES = [Mixture(brokers, controllers) for brokers in BROKERS for controllers in CONTROLLERS]


@pytest.fixture
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path, request.param.brokers, *request.param.controllers)
    cluster.start()
    yield cluster
    cluster.forget()


@pytest.mark.parametrize("cluster", [Mixture((OURS, OURS, OURS), (THEIRS,))], indirect=True, ids=str)
def test_brokers_follow_each_other_through_kills(cluster: Cluster) -> None:
    cluster.create(TOPIC, ASSIGNMENTS)
    load = Load(cluster.bootstrap, TOPIC, len(ASSIGNMENTS))
    for node_id in (1, 2):
        server = cluster.members[node_id]
        server.kill9()
        server.start()
        cluster.all_in_sync(TOPIC, ASSIGNMENTS)
    load.finish()
    assert load.check()
    assert cluster.assert_alike(TOPIC, ASSIGNMENTS)


@pytest.mark.cluster
@pytest.mark.parametrize("cluster", MIXTURES, indirect=True, ids=str)
def test_nothing_acknowledged_is_lost_through_kills(
    cluster: Cluster, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    kills = -(-int(request.config.getoption("--cluster-kills")) // len(MIXTURES))
    cluster.create(TOPIC, ASSIGNMENTS)
    load = Load(cluster.bootstrap, TOPIC, len(ASSIGNMENTS))
    faults = Faults(cluster, TOPIC, int(request.config.getoption("--cluster-seed")))
    begun_s = time.monotonic()
    with capsys.disabled():  # it takes minutes: who waits sees how far it is
        while faults.kills < kills:
            struck = faults.strike()
            after_s = time.monotonic() - begun_s
            print(f"\n  {after_s:5.0f} s: {struck}, {faults.kills} of {kills} kills", end="", flush=True)
    cluster.all_in_sync(TOPIC, ASSIGNMENTS)
    load.finish()
    acknowledged = load.check()
    eventually(lambda: links(cluster) - cluster.network.carried(), set())  # what does not pass there cannot be cut
    cluster.assert_replicated(TOPIC, ASSIGNMENTS)
    with capsys.disabled():
        print(f"\n{cluster.nodes}: {acknowledged} records acknowledged, {faults.kills} kills\n{summary(faults.counts)}")


def links(cluster: Cluster) -> set[frozenset[int]]:
    """Returns the pairs of nodes that are always connected: each with the active controller, and all brokers."""
    active = leader_of(cluster.bootstrap)
    to_active = [(active, node.node_id) for node in cluster.nodes if node.node_id != active]
    return {frozenset(pair) for pair in (*to_active, *itertools.combinations(cluster.members, 2))}
