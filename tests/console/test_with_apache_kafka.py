"""Tests the console with a broker of Apache Kafka: every page works, or says what the cluster lacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from playwright.sync_api import Browser as Chromium

from tests.console import every_page
from tests.console.browser import Browser, ConsoleProcess, produce, running_console
from tests.console.chromium import NARROW, axe_source, opening, running_chromium, serious_faults, width_of
from tests.console.test_hostile_records import HOSTILE
from tests.console.test_shares import odradek
from tests.interop.brokers import ApacheKafka

pytestmark = pytest.mark.console

MEGABYTE = 1_000_000
"""The size of the largest record of a topic by default."""


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    broker = ApacheKafka(tmp_path_factory.mktemp("apache") / "data")
    broker.start()
    yield broker
    broker.stop()
    broker.forget()


@pytest.fixture(scope="module")
def console(apache: ApacheKafka) -> Iterator[ConsoleProcess]:
    with running_console(apache.bootstrap, "--allow-changes") as process:
        fill(apache.bootstrap, process.browser())
        yield process


@pytest.fixture(scope="module")
def browser(console: ConsoleProcess) -> Browser:
    return console.browser()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    with running_chromium() as started:
        yield started


@pytest.fixture(scope="module")
def axe() -> str:
    return axe_source()


def fill(bootstrap: str, browser: Browser) -> None:
    """Creates a topic by the console, with records, a group and a transaction."""
    plan = browser.change("/create-topic", topic="orders", partitions="2", configs="retention.ms=60000000")
    assert "Create topic orders: done" in browser.confirm("/create-topic", plan).words
    produce(bootstrap, "orders", [b'{"n": %d}' % number for number in range(50)], key=b"k")
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "billing"})
    reader.commit(offsets=[TopicPartition("orders", 0, 20)], asynchronous=False)
    reader.close()
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "shop-1"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", b"x", partition=1)
    producer.commit_transaction()
    for topic in ("payments", "hostile"):
        browser.confirm("/create-topic", browser.change("/create-topic", topic=topic, partitions="1"))
    produce(bootstrap, "payments", [b"paid"] * 5)
    produce(bootstrap, "hostile", [value for value in HOSTILE.values() if len(value) < MEGABYTE])
    odradek("config", "set", "group", "packers", "share.auto.offset.reset=earliest", "-b", bootstrap)
    odradek("share", "consume", "packers", "payments", "-n", "2", "-b", bootstrap)
    with browser.events("/live/overview") as events:
        assert any("Health" in content and "Examining" not in content for _, content in events)


PAGES = {
    "/": ("1 broker ", "Controllers leader 1", "records/s in"),
    "/topics": ("orders", "billing 30"),
    "/topics/orders": ("0 1 0 1 0 50 50",),
    "/topics/orders/records?partitions=0": ('{"n": 49}', "kcat -b"),
    "/topics/orders/records/0/7": ('{ "n": 7 }',),
    "/topics/orders/configs?q=retention.ms": ("60000000 topic",),
    "/topics/orders/groups": ("billing classic Empty",),
    "/topics/orders/producers": ("Last sequence",),
    "/topics/orders/operations": ("Reassign",),
    "/topics/__consumer_offsets/records?limit=500": ("OffsetCommitKey(group='billing', topic='orders', partition=0)",),
    "/groups": ("billing",),
    "/group?name=billing": ("lag 30", "orders 0 20 50 30"),
    "/transactions": ("shop-1",),
    "/transaction?id=shop-1": ("CompleteCommit",),
    "/transactions/hanging": ("No transaction hangs",),
    "/clients": ("No group has members now",),
    "/clients/telemetry": ("No API of Kafka returns what clients push",),
    "/security": ("SECURITY_DISABLED",),
    "/security/users": ("There are no users",),
    "/security/quotas": ("There are no quotas",),
}


@pytest.mark.parametrize("path", PAGES)
def test_a_page_shows_the_cluster(browser: Browser, path: str) -> None:
    answer = browser.get(path)
    assert answer.status == 200
    for expected in PAGES[path]:
        assert expected in answer.words


@pytest.mark.parametrize("name", every_page.PAGES)
def test_a_page_works_in_chromium(chromium: Chromium, console: ConsoleProcess, axe: str, name: str) -> None:
    with opening(chromium, console) as open_page:
        page = open_page(every_page.PAGES[name])
        page.wait_for_timeout(400)
        assert not serious_faults(page, axe)
        page.set_viewport_size({"width": NARROW, "height": 860})
        assert width_of(page) <= NARROW


def test_a_share_group_has_what_kafkas_apis_give(browser: Browser) -> None:
    with browser.events("/live/share?name=packers") as events:
        _, content = next(events)
    assert "are not Odradek" in content


def test_a_search_finds_records(browser: Browser) -> None:
    with browser.events("/live/records/orders?json=n%3D42") as events:
        for name, content in events:
            if name == "progress" and "Done" in content:
                assert "1 match" in content
                return


def test_idle_tails_delay_no_page(browser: Browser) -> None:
    """A broker answers the requests of a connection one after the other, so no fetch may wait for records."""
    with ExitStack() as tails:
        for _ in range(100):
            tails.enter_context(browser.events("/live/records/orders?live=1"))
        for page in ("", "/configs", "/records"):
            assert browser.get(f"/topics/orders{page}").status == 200


@pytest.mark.parametrize(
    ("path", "fields", "typed"),
    [
        ("/topics/orders/configs", {"config": "retention.ms", "value": "70000000"}, ""),
        ("/topics/orders/grow", {"partitions": "3"}, "orders"),
        ("/group/reset", {"name": "billing", "to": "start"}, ""),
        ("/topics/orders/trim", {"to": "5"}, "orders"),
        ("/clients/telemetry/subscribe", {"name": "all", "metrics": "*"}, ""),
        ("/security/quotas", {"user": "ana", "quota": "producer_byte_rate", "value": "1000"}, ""),
        ("/topics/orders/delete", {}, "orders"),
    ],
)
def test_a_change_is_carried_out(browser: Browser, path: str, fields: dict[str, str], typed: str) -> None:
    page = browser.confirm(path, browser.change(path, **fields), typed=typed)
    assert page.status == 200
    assert ": done" in page.words


def test_a_password_is_set(browser: Browser) -> None:
    page = browser.change("/security/users/set", user="bob", mechanism="SCRAM-SHA-256", password="hunter-2")
    assert "bob SCRAM-SHA-256" in page.words
