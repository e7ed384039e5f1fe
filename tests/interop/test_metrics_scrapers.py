"""Tests that a scrape of ten thousand partitions costs little, and that hostile scrapers cost clients nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.figures import Sample
from bench.scrapes import PARTITIONS, SCRAPE_S, TOPICS, create_topics, probe, scraped
from tests.interop.brokers import Odradek
from tests.interop.hostile_scrapers import ATTACKS
from tests.interop.local import SOON_S
from tests.interop.processes import ROOT, free_port
from tests.interop.prometheus import page

pytestmark = [pytest.mark.metrics, pytest.mark.odradek_only]

PROBED_S = 15
SCRAPED_EACH_S = 5
"""Scrape interval: a page is served again for four seconds."""


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Odradek, str]]:
    """Yields a broker with ten thousand partitions, and the address of its metrics."""
    address = f"127.0.0.1:{free_port()}"
    broker = Odradek(tmp_path_factory.mktemp("many") / "data", {"odradek.metrics.listener": address})
    broker.start()
    create_topics(broker.bootstrap, TOPICS)
    yield broker, address
    broker.forget()  # to flush ten thousand logs takes it longer than tests wait


def shown(latencies: Sample) -> str:
    return ", ".join(f"{key[:-3]} {value:.2f} ms" for key, value in latencies.items())


def test_a_scrape_of_ten_thousand_partitions_is_quick_and_not_felt(watched: tuple[Odradek, str]) -> None:
    broker, address = watched
    assert page(address).count("kafka_topic_partition_current_offset{") >= TOPICS * PARTITIONS
    before = probe(broker.bootstrap, PROBED_S)
    with scraped(address, SCRAPED_EACH_S, PROBED_S) as took_s:
        during = probe(broker.bootstrap, PROBED_S)
    print(f"\nno scrape: {shown(before)}\nscraped:   {shown(during)}\nscrapes:   {[f'{one:.3f}' for one in took_s]} s")
    assert min(took_s) < SCRAPE_S
    limit_ms = max(2 * before["p99_ms"], before["p99_ms"] + 3)
    assert during["p99_ms"] < limit_ms, f"{shown(before)} became {shown(during)}"


@pytest.mark.parametrize("kind", ATTACKS)
def test_hostile_scrapers_cost_clients_nothing(watched: tuple[Odradek, str], kind: str) -> None:
    broker, address = watched
    before = probe(broker.bootstrap, 5)
    command = [sys.executable, "-m", "tests.interop.hostile_scrapers", address, kind, str(PROBED_S + 2)]
    hostile = subprocess.Popen(command, cwd=ROOT)
    time.sleep(1)  # they are all there
    during = probe(broker.bootstrap, PROBED_S)
    assert hostile.wait(SOON_S) == 0
    print(f"\n{kind}: {shown(before)} became {shown(during)}; memory {resident_mb(broker.pid):.0f} MB")
    limit_ms = max(4 * before["p99_ms"], before["p99_ms"] + 10)
    assert during["p99_ms"] < limit_ms, f"{shown(before)} became {shown(during)}"
    assert readiness(address) == "ready\n"


def readiness(address: str) -> str:
    """Returns the broker's readiness. Earlier connections in the kernel are accepted first, and a later one from the
    same address may replace a connection that has not sent its request."""
    ends_s = time.monotonic() + SOON_S
    while True:
        try:
            return page(address, "/readyz")
        except ConnectionResetError:
            assert time.monotonic() < ends_s, "no place is left for who asks whether the broker is ready"


def resident_mb(pid: int) -> float:
    fields = dict(line.partition(":")[::2] for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024
