"""Tests delayed delivery and ordering by key with KafkaShareConsumer 4.3.1, across a kill of the broker."""

from __future__ import annotations

import time

import pytest

from tests.interop import jvm
from tests.interop.brokers import Broker
from tests.interop.sharing import EXPLICIT, SHORT, Consumers, Record

pytestmark = pytest.mark.odradek_only

HEADER = "not-before"
DELAY_MS = 10_000
NAMES = ("a", "b", "c")
LONG_LOCK_MS = "30000"


@pytest.fixture
def properties() -> dict[str, str]:
    return SHORT


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def send(consumers: Consumers, topic: str, *records: str) -> None:
    """Sends records, each as key/value or key/value/header/text."""
    consumers.client.ask(f"records {consumers.bootstrap} {topic} {' '.join(records)}")


def reopen(consumers: Consumers, broker: Broker, topic: str, *names: str) -> None:
    """Kills and restarts the broker, and opens the consumers again."""
    broker.kill9()
    broker.start()
    consumers.bootstrap = broker.bootstrap
    for name in names:
        consumers.close(name)
        consumers.open(name, topic, EXPLICIT, "max.poll.records=20")


def take(consumers: Consumers, name: str, count: int) -> list[Record]:
    """Reads this number of records, and accepts them in order."""
    taken: list[Record] = []
    while len(taken) < count and (polled := consumers.poll(name, timeout_s=30)):
        consumers.acknowledge(name, "ACCEPT", *(record.offset for record in polled))
        assert consumers.commit(name) == []
        taken += polled
    return taken


def values(records: list[Record]) -> list[str]:
    return sorted(record.value for record in records)


def test_a_delayed_record_is_delivered_in_its_time_though_the_broker_is_killed(
    consumers: Consumers, broker: Broker, topic: str
) -> None:
    consumers.create(
        broker, topic, odradek_share_delivery_delay_header=HEADER, share_record_lock_duration_ms=LONG_LOCK_MS
    )
    sent_ms = now_ms()
    send(
        consumers, topic, f"/relative/{HEADER}/{DELAY_MS}", "/plain", f"/wrong/{HEADER}/soon",
        f"/absolute/{HEADER}/@{sent_ms + DELAY_MS}", f"/other/another/{DELAY_MS}",
    )  # fmt: skip
    consumers.open("a", topic, EXPLICIT)
    first = take(consumers, "a", 3)
    if now_ms() < sent_ms + DELAY_MS:  # on a very slow machine, the delay is over
        assert values(first) == ["other", "plain", "wrong"]
    reopen(consumers, broker, topic, "a")
    early = now_ms() < sent_ms + DELAY_MS - 1_000
    if early:
        assert consumers.poll("a", 1, timeout_s=0.3) == []
    late = take(consumers, "a", 5 - len(first))
    assert now_ms() >= sent_ms + DELAY_MS
    assert values([*first, *late]) == ["absolute", "other", "plain", "relative", "wrong"]
    assert {record.delivery for record in late} <= {1}
    consumers.close("a")
    described = jvm.tool("kafka-share-groups", "--bootstrap-server", broker.bootstrap, "--describe", "--group", topic)
    assert described.split()[-1] == "0", described


class Ledger:
    """The records that three consumers have received."""

    def __init__(self) -> None:
        self.held: dict[str, list[Record]] = {name: [] for name in NAMES}
        self.accepted: set[int] = set()
        self.seen: list[Record] = []
        self.takers: set[str] = set()

    def given(self, name: str, records: list[Record]) -> None:
        for record in records:
            key = key_of(record)
            others = {key_of(record) for other in NAMES if other != name for record in self.held[other]}
            assert key not in others, f"{key} is with two members"
            earlier = [record.offset for record in self.seen if key_of(record) == key]
            assert record.offset in earlier or record.offset > max(earlier, default=-1), f"{key} out of order"
            assert record.offset not in self.accepted
            self.held[name].append(record)
            self.seen.append(record)

    def settle(self, consumers: Consumers, name: str) -> None:
        """Accepts a consumer's records, and releases some that it has for the first time."""
        held, self.held[name] = self.held[name], []
        let_go = [record.offset for record in held if record.offset % 11 == 0 and record.delivery == 1]
        accepted = [record.offset for record in held if record.offset not in let_go]
        for kind, offsets in (("RELEASE", let_go), ("ACCEPT", accepted)):
            if offsets:
                consumers.acknowledge(name, kind, *offsets)
        if held:
            assert consumers.commit(name) == []
            self.accepted.update(accepted)
            self.takers.add(name)


def key_of(record: Record) -> str:
    return record.value.partition(".")[0]


def test_records_of_a_key_are_with_one_consumer_and_in_order_though_the_broker_is_killed(
    consumers: Consumers, broker: Broker, topic: str
) -> None:
    consumers.create(
        broker,
        topic,
        odradek_share_order_by_key="true",
        share_delivery_count_limit="10",
        share_record_lock_duration_ms=LONG_LOCK_MS,
    )
    count, keys = 360, 60
    for name in NAMES:
        consumers.open(name, topic, EXPLICIT, "max.poll.records=20")
    send(consumers, topic, *(f"k{number * 7 % keys}/k{number * 7 % keys}.{number}" for number in range(count)))
    ledger = Ledger()
    deadline = time.monotonic() + 120
    turn = 0
    while len(ledger.accepted) < count and time.monotonic() < deadline:
        turn += 1
        for name in NAMES:
            ledger.given(name, consumers.poll(name, timeout_s=0.1))
        if turn == 4:
            reopen(consumers, broker, topic, *NAMES)
            ledger.held = {name: [] for name in NAMES}
        for name in NAMES:
            ledger.settle(consumers, name)
    assert ledger.accepted == set(range(count))
    assert ledger.takers == set(NAMES)
    assert any(record.delivery > 1 for record in ledger.seen)
    for name in NAMES:
        consumers.close(name)
