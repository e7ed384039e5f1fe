"""A scrape of ten thousand partitions costs little, and hostile scrapers cost clients nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.brokers import Odradek
from tests.interop.hostile_scrapers import ATTACKS
from tests.interop.local import SOON_S
from tests.interop.processes import ROOT, free_port
from tests.interop.prometheus import page

pytestmark = [pytest.mark.metrics, pytest.mark.odradek_only]

TOPICS, PARTITIONS, AT_ONCE = 1_000, 10, 100
PROBED_S = 15
EACH_S = 0.005
SCRAPE_S = 0.3
"""The goal of a scrape of ten thousand partitions."""


class Latency(NamedTuple):
    """From produce to acknowledgement, one record after the other, in milliseconds."""

    p50: float
    p99: float
    worst: float
    count: int

    def __str__(self) -> str:
        return f"p50 {self.p50:.2f} ms, p99 {self.p99:.2f} ms, worst {self.worst:.1f} ms of {self.count}"


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Odradek, str]]:
    """A broker with ten thousand partitions, and where it tells of them."""
    address = f"127.0.0.1:{free_port()}"
    broker = Odradek(tmp_path_factory.mktemp("many") / "data", {"odradek.metrics.listener": address})
    broker.start()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for first in range(0, TOPICS, AT_ONCE):
        topics = [NewTopic(f"topic-{number}", PARTITIONS, 1) for number in range(first, first + AT_ONCE)]
        for created in admin.create_topics(topics, operation_timeout=SOON_S).values():
            created.result(SOON_S)
    yield broker, address
    broker.stop()
    broker.forget()


def probed(bootstrap: str, seconds: float = PROBED_S) -> Latency:
    """Returns the latency of a producer that sends a record each few milliseconds."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": 1})
    took_ms: list[float] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        took_ms.append(message.latency() * 1000)

    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        producer.produce("topic-0", bytes(100), on_delivery=delivered)
        producer.flush(SOON_S)
        time.sleep(EACH_S)  # the rate of the load
    took_ms.sort()
    return Latency(took_ms[len(took_ms) // 2], took_ms[int(len(took_ms) * 0.99)], took_ms[-1], len(took_ms))


@contextmanager
def scraped_each(seconds: float, address: str) -> Iterator[list[float]]:
    """Scrapes beside what goes on; how long each took."""
    took_s: list[float] = []
    ended = threading.Event()

    def scrape() -> None:
        while not ended.wait(seconds):
            began = time.monotonic()
            page(address)
            took_s.append(time.monotonic() - began)

    thread = threading.Thread(target=scrape, daemon=True)
    thread.start()
    yield took_s
    ended.set()
    thread.join()


def test_a_scrape_of_ten_thousand_partitions_is_quick_and_not_felt(watched: tuple[Odradek, str]) -> None:
    broker, address = watched
    assert page(address).count("kafka_topic_partition_current_offset{") >= TOPICS * PARTITIONS
    before = probed(broker.bootstrap)
    with scraped_each(5, address) as took_s:  # a page is as young for four
        during = probed(broker.bootstrap)
    print(f"\nno scrape: {before}\nscraped:   {during}\nscrapes:   {[f'{one:.3f}' for one in took_s]} s")
    assert min(took_s) < SCRAPE_S
    assert during.p99 < max(2 * before.p99, before.p99 + 3), f"{before} became {during}"


@pytest.mark.parametrize("kind", ATTACKS)
def test_hostile_scrapers_cost_clients_nothing(watched: tuple[Odradek, str], kind: str) -> None:
    broker, address = watched
    before = probed(broker.bootstrap, 5)
    command = [sys.executable, "-m", "tests.interop.hostile_scrapers", address, kind, str(PROBED_S + 2)]
    hostile = subprocess.Popen(command, cwd=ROOT)
    time.sleep(1)  # they are all there
    during = probed(broker.bootstrap)
    assert hostile.wait(SOON_S) == 0
    print(f"\n{kind}: {before} became {during}; memory {resident_mb(broker.pid):.0f} MB")
    assert during.p99 < max(4 * before.p99, before.p99 + 10), f"{before} became {during}"
    assert page(address, "/readyz") == "ready\n"


def resident_mb(pid: int) -> float:
    fields = dict(line.partition(":")[::2] for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024
