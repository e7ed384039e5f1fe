"""Clusters of Odradek and Apache Kafka in every mixture, broken while clients are at work: what was acknowledged stays,
where it was acknowledged, and all replicas have it."""

from __future__ import annotations

import itertools
import random
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.interop.load import Reader, Seen, Writer
from tests.interop.mixture import SESSION_MS, Cluster, Make, Member

TOPIC = "under-load"
ASSIGNMENTS = [list(order) for order in itertools.permutations((1, 2, 3))]
"""Each broker leads two partitions, and each follows each."""

PATIENT = {"message.timeout.ms": 180_000, "linger.ms": 20}
WRITERS: tuple[dict[str, object], ...] = (
    {**PATIENT, "enable.idempotence": True},
    {**PATIENT, "enable.idempotence": True, "compression.type": "zstd"},
    {**PATIENT, "enable.idempotence": False, "max.in.flight": 1},
)
OURS, THEIRS = Make.ODRADEK, Make.APACHE
MIXTURES = [(OURS, OURS, OURS), (OURS, OURS, THEIRS), (OURS, THEIRS, THEIRS)]


@pytest.fixture
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path, request.param)
    cluster.start()
    yield cluster
    cluster.forget()


class Load:
    """Writers of a topic's partitions, and a reader of all."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        settings = itertools.cycle(WRITERS)
        self.writers = [Writer(bootstrap, (topic, number), next(settings)) for number in range(partitions)]
        self.reader = Reader(bootstrap, topic, partitions)
        for thread in (*self.writers, self.reader):
            thread.start()

    def finish(self) -> None:
        for writer in self.writers:
            writer.finish()
        self.reader.finish()

    def check(self) -> int:
        """Nothing acknowledged is lost or elsewhere, the reader never went back; how much was acknowledged."""
        assert not self.reader.faults
        for partition, writer in enumerate(self.writers):
            assert not writer.failures
            check(writer, self.reader.seen[partition], exactly_once=partition % len(WRITERS) != 2)
        return sum(len(writer.acknowledged) for writer in self.writers)


def check(writer: Writer, seen: list[Seen], *, exactly_once: bool) -> None:
    assert [one.offset for one in seen] == list(range(len(seen)))
    stored = dict(seen)
    assert {offset: stored.get(offset) for offset in writer.acknowledged} == writer.acknowledged
    numbers = [one.number for one in seen]
    assert (numbers if exactly_once else list(dict.fromkeys(numbers))) == list(range(writer.sent))


class Faults:
    """A series of kills, stops and pauses of brokers, by chance."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.counts = dict.fromkeys(("killed leading", "killed following", "stopped", "frozen"), 0)
        self._cluster = cluster
        self._chance = random.Random(seed)

    @property
    def kills(self) -> int:
        return self.counts["killed leading"] + self.counts["killed following"]

    def strike(self) -> None:
        """One broker goes, in one way or another, and comes back; not always are all in sync again before the next."""
        chance, leaders = self._chance, self._cluster.leaders(TOPIC)
        victim = chance.choice([*self._cluster.members.values()])
        how = chance.choices((self._kill, self._stop, self._freeze), (8, 1, 1))[0]
        time.sleep(chance.uniform(0.1, 1.5))
        how(victim, leaders)
        if chance.random() < 0.8:
            self._cluster.all_in_sync(TOPIC, ASSIGNMENTS)

    def _kill(self, victim: Member, leaders: Sequence[int]) -> None:
        victim.server.kill9()
        self.counts["killed leading" if victim.node_id in leaders else "killed following"] += 1
        time.sleep(self._chance.choice((0, SESSION_MS / 1000)))
        victim.server.start()

    def _stop(self, victim: Member, _: Sequence[int]) -> None:
        self.counts["stopped"] += 1
        self._cluster.stop(victim)
        victim.server.start()

    def _freeze(self, victim: Member, _: Sequence[int]) -> None:
        """It is taken for dead, and goes on as if nothing had happened."""
        self.counts["frozen"] += 1
        victim.server.signal(signal.SIGSTOP)
        time.sleep(SESSION_MS / 1000 * self._chance.uniform(0.2, 2.0))
        victim.server.signal(signal.SIGCONT)


@pytest.mark.parametrize("cluster", [(OURS, OURS, OURS)], indirect=True, ids=["ooo"])
def test_brokers_follow_each_other_through_kills(cluster: Cluster) -> None:
    cluster.create(TOPIC, ASSIGNMENTS)
    load = Load(cluster.bootstrap, TOPIC, len(ASSIGNMENTS))
    for node_id in (1, 2):
        server = cluster.members[node_id].server
        server.kill9()
        server.start()
        cluster.all_in_sync(TOPIC, ASSIGNMENTS)
    load.finish()
    assert load.check()
    assert cluster.assert_alike(TOPIC, ASSIGNMENTS)


@pytest.mark.cluster
@pytest.mark.parametrize("cluster", MIXTURES, indirect=True, ids=lambda makes: "".join(one.value[0] for one in makes))
def test_nothing_acknowledged_is_lost_through_kills(
    cluster: Cluster, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    kills = -(-int(request.config.getoption("--cluster-kills")) // len(MIXTURES))
    cluster.create(TOPIC, ASSIGNMENTS)
    load = Load(cluster.bootstrap, TOPIC, len(ASSIGNMENTS))
    faults = Faults(cluster, int(request.config.getoption("--cluster-seed")))
    while faults.kills < kills:
        faults.strike()
    cluster.all_in_sync(TOPIC, ASSIGNMENTS)
    load.finish()
    acknowledged = load.check()
    cluster.assert_replicated(TOPIC, ASSIGNMENTS)
    with capsys.disabled():
        print(f"\n{[*cluster.members.values()]}: {acknowledged} records acknowledged, {faults.counts}")
