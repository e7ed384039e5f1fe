"""Tests when a broker counts as warm, and the order of the warm-up rounds."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from bench import rounds as module
from bench import warmth
from bench.figures import Sample
from bench.loads import LOADS
from bench.peers.brokers import ApacheKafka, Odradek
from bench.peers.peer import PeerProcess
from bench.rounds import InterleavedRounds


@pytest.mark.parametrize(
    ("costs", "settled"),
    [
        ([], False),
        ([5.0, 5.0], False),
        ([20.0, 9.0, 7.0], False),
        ([20.0, 7.3, 7.1, 7.0], True),
        ([7.0, 7.0, 7.0, 6.0], False),
    ],
)
def test_a_broker_is_warm_when_three_rounds_cost_alike(costs: list[float], settled: bool) -> None:
    assert warmth.is_settled(costs) is settled


def test_a_cost_that_never_rests_is_measured_after_the_most_rounds() -> None:
    restless = [float(1 + number % 2) for number in range(warmth.MOST_ROUNDS)]
    assert warmth.needs_more(restless[:-1])
    assert not warmth.needs_more(restless)


class Scripted:
    """A trial whose rounds have the costs in its peer's script."""

    SCRIPTS: ClassVar = {"odradek": [1.0] * 9, "kafka": [20.0, 9.0, 7.0, 7.0, 7.0, 6.9, 6.8]}

    def __init__(self, peer: PeerProcess, _load: object, _work: Path) -> None:
        self.peer = peer
        self.costs = iter(self.SCRIPTS[peer.name])
        self.numbers: list[int] = []

    def open(self) -> None: ...

    def close(self) -> None: ...

    def measure(self, number: int) -> Sample:
        ORDER.append((self.peer.name, number))
        return {"cpu_s_per_gb": next(self.costs)}


ORDER: list[tuple[str, int]] = []


def test_each_peer_is_warmed_until_its_cost_rests_and_stays_up_for_the_rounds_that_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ORDER.clear()
    monkeypatch.setattr(module, "Trial", Scripted)
    rows = InterleavedRounds(LOADS["produce"], [Odradek, ApacheKafka], tmp_path, lambda _: None).run(2, warm_up=True)
    assert [len(row.warm_up) for row in rows.values()] == [3, 5]
    assert rows["kafka"].cold()["cpu_s_per_gb"].median == 20.0
    assert rows["kafka"].is_settled(LOADS["produce"].figures)
    assert [sample["cpu_s_per_gb"] for sample in rows["kafka"].samples] == [6.9, 6.8]
    assert ORDER[-4:] == [("odradek", 0), ("kafka", 0), ("kafka", 1), ("odradek", 1)], "there and back"
    assert ORDER[:4] == [("odradek", -1), ("kafka", -1), ("odradek", -2), ("kafka", -2)]


def test_a_start_is_never_warmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ORDER.clear()
    monkeypatch.setattr(module, "Trial", Scripted)
    InterleavedRounds(LOADS["start-up"], [Odradek], tmp_path, lambda _: None).run(1, warm_up=True)
    assert all(number >= 0 for _, number in ORDER)
