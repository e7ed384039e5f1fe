"""Tests the pages in a real browser, with a cluster of three brokers: no errors, accessible, usable with keys, at every
width, and live. `make test-console` runs them, and draws the screenshots of docs/console.md."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import AcknowledgeType, Consumer, Producer, TopicPartition
from playwright.sync_api import Browser as Chromium

from odradek.testing import Cluster
from tests.console.browser import ConsoleProcess, produce, running_console
from tests.console.chromium import (
    NARROW,
    WIDE,
    Open,
    axe_source,
    opening,
    running_chromium,
    serious_faults,
    width_of,
)
from tests.console.conftest import SCREENSHOTS
from tests.console.every_page import PAGES
from tests.console.test_hostile_records import HOSTILE
from tests.console.test_shares import acquire, member, odradek

pytestmark = pytest.mark.console

FOREVER_MS = 900_000
"""Longer than the tests."""

SETTINGS: dict[str, str | int | bool] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "odradek.telemetry.topic": "client-telemetry",
    "group.share.max.record.lock.duration.ms": FOREVER_MS,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3, SETTINGS) as started:
        fill(started)
        yield started


def fill(cluster: Cluster) -> None:
    """Writes what each page shows."""
    bootstrap = cluster.bootstrap
    for name, partitions in (("orders", 6), ("payments", 1), ("shipments", 3)):
        cluster.create_topic(name, partitions=partitions)
    for partition in range(6):
        values = [b'{"order": %d, "total": %d.5, "open": true}' % (at, at * 7 % 1000) for at in range(400)]
        produce(bootstrap, "orders", values, partition, key=b"customer-%d" % partition, headers=[("trace", b"4f-21")])
    produce(bootstrap, "payments", [b'{"paid": %d}' % number for number in range(20)], key=b"customer-3")
    cluster.create_topic("hostile", partitions=1, configs={"max.message.bytes": "20000000"})
    for value in HOSTILE.values():
        produce(bootstrap, "hostile", [value], key=value[:500])
    for group, behind in (("billing", 30), ("analytics", 250)):
        reader = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
        reader.commit(offsets=[TopicPartition("orders", at, 400 - behind - at) for at in range(6)], asynchronous=False)
        reader.close()

    def run(*words: str, stdin: str = "") -> None:
        odradek(*words, "-b", bootstrap, stdin=stdin)

    fill_share_group(cluster, run)
    run("config", "set", "client-metrics", "all", "metrics=*", "interval.ms=1000")
    run("acl", "add", "--allow", "User:ana", "--topic", "orders", "--prefixed", "--operation", "read")
    run("quota", "set", "--user", "ana", "producer_byte_rate=1048576")
    run("user", "set", "ana", stdin="secret-of-ana\n")


def fill_share_group(cluster: Cluster, run: Callable[..., None]) -> None:
    """Lets a share group have records of each state, and dead letters."""
    cluster.create_topic("dlq.payments", partitions=1, configs={"errors.deadletterqueue.group.enable": "true"})
    queue = "errors.deadletterqueue.topic.name=dlq.payments"
    lock = f"share.record.lock.duration.ms={FOREVER_MS}"
    run("config", "set", "group", "packers", "share.auto.offset.reset=earliest", queue, lock)
    run("share", "consume", "packers", "payments", "-n", "5", "--release")
    run("share", "consume", "packers", "payments", "-n", "2", "--reject")


@pytest.fixture(scope="module")
def clients(cluster: Cluster) -> Iterator[None]:
    """Clients that run as long as the tests: members of groups, and a producer in a transaction, which push their
    metrics."""
    where = {"bootstrap.servers": cluster.bootstrap}
    producer = Producer({**where, "transactional.id": "shop-1", "transaction.timeout.ms": FOREVER_MS})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("payments", b'{"paid": 20}')
    producer.flush()
    of_group = {"group.id": "dispatch", "client.id": "dispatcher-1", "max.poll.interval.ms": FOREVER_MS}
    reader = Consumer({**where, **of_group})
    reader.subscribe(["shipments"])
    deadline = time.monotonic() + 60
    while not reader.assignment():
        assert time.monotonic() < deadline
        reader.poll(0.2)
    with member(cluster, "packers", "payments") as packer:
        messages = acquire(packer, 10)
        for at, kind in ((2, AcknowledgeType.ACCEPT), (3, AcknowledgeType.ACCEPT), (6, AcknowledgeType.RELEASE)):
            packer.acknowledge(messages[at], kind)
        packer.commit_sync(10)
        yield
    reader.close()
    producer.abort_transaction()


@pytest.fixture(scope="module")
def served(cluster: Cluster, clients: None) -> Iterator[ConsoleProcess]:
    with running_console(cluster.bootstrap, "--allow-changes") as process:
        yield process


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    with running_chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def axe() -> str:
    return axe_source()


@pytest.fixture
def opened(chromium: Chromium, served: ConsoleProcess) -> Iterator[Open]:
    with opening(chromium, served) as open_page:
        yield open_page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible(opened: Open, axe: str, name: str, scheme: str) -> None:
    page = opened(PAGES[name], scheme=scheme)
    page.wait_for_timeout(400)
    assert not serious_faults(page, axe)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_narrow_screen(opened: Open, name: str) -> None:
    page = opened(PAGES[name], NARROW)
    page.wait_for_timeout(200)
    assert width_of(page) <= NARROW


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_drawn(opened: Open, name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    folder = Path(request.config.getoption(SCREENSHOTS, None) or tmp_path)
    page = opened(PAGES[name])
    if page.locator("[data-chart]").count():
        page.locator("[data-chart] canvas").wait_for(timeout=60_000)
    page.wait_for_timeout(500)
    file = folder / f"console-{name}.png"
    page.screenshot(path=file)
    assert file.stat().st_size > 10_000


@pytest.mark.parametrize(("name", "path", "width"), [("dark", "/", WIDE), ("narrow", "/topics", NARROW)])
def test_a_page_is_drawn_dark_and_narrow(
    opened: Open, name: str, path: str, width: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    folder = Path(request.config.getoption(SCREENSHOTS, None) or tmp_path)
    page = opened(path, width, "dark")
    page.wait_for_timeout(1000)
    page.screenshot(path=folder / f"console-{name}.png")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"


def test_keys_go_everywhere(opened: Open) -> None:
    page = opened("/")
    for keys, path in (
        ("gt", "/topics"),
        ("gg", "/groups"),
        ("gx", "/transactions"),
        ("gc", "/clients"),
        ("gs", "/security"),
        ("go", "/"),
    ):
        for key in keys:
            page.keyboard.press(key)
        page.wait_for_url(f"**{path}")
    page.keyboard.press("?")
    assert page.locator("dialog#keys").is_visible()
    page.keyboard.press("Escape")
    page.goto(page.url + "topics")
    page.locator("tbody tr").first.wait_for()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("/")
    page.keyboard.type("ship")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=ship**")
    assert page.locator("tbody tr").count() == 1


@pytest.mark.ci
def test_the_theme_is_kept(opened: Open) -> None:
    page = opened("/topics")
    page.keyboard.press("d")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.ci
def test_new_records_appear_live(opened: Open, cluster: Cluster) -> None:
    cluster.create_topic("live", partitions=1)
    page = opened("/topics/live/records?live=1")
    page.wait_for_timeout(1500)
    for number in range(3):
        produce(cluster.bootstrap, "live", [b"fresh-%d" % number])
        page.get_by_text(f"fresh-{number}").wait_for(timeout=10_000)
    assert page.locator("tbody tr").first.inner_text().endswith("fresh-2")
    page.get_by_text("Stop").click()
    page.get_by_text("Stopped.").wait_for()
    produce(cluster.bootstrap, "live", [b"unseen"])
    page.wait_for_timeout(2500)
    assert page.locator("tbody tr").count() == 3


MARKUP = "main script, main img"


@pytest.mark.parametrize("offset", range(len(HOSTILE)), ids=list(HOSTILE))
def test_a_hostile_record_is_harmless(opened: Open, offset: int) -> None:
    page = opened(f"/topics/hostile/records/0/{offset}")
    page.get_by_role("heading", name="Value").wait_for()
    assert page.locator(MARKUP).count() == 0


def test_hostile_records_are_harmless_in_a_live_tail(opened: Open, cluster: Cluster) -> None:
    cluster.create_topic("hostile-live", partitions=1, configs={"max.message.bytes": "20000000"})
    page = opened("/topics/hostile-live/records?live=1")
    page.wait_for_timeout(1500)
    for value in HOSTILE.values():
        produce(cluster.bootstrap, "hostile-live", [value], key=value[:500], headers=[("name", value[:500])])
    page.locator("tbody tr").nth(len(HOSTILE) - 1).wait_for(timeout=30_000)
    assert page.locator(MARKUP).count() == 0
    assert page.get_by_text("Stop").count() == 1


HIDE = """(isHidden) => {
    Object.defineProperty(document, "hidden", {configurable: true, get: () => isHidden});
    document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_a_hidden_tab_holds_no_connection_and_misses_nothing(opened: Open, cluster: Cluster) -> None:
    cluster.create_topic("unwatched", partitions=1)
    page = opened("/topics/unwatched/records?live=1")
    page.wait_for_timeout(1500)
    page.evaluate(HIDE, True)
    tabs = [page.context.new_page() for _ in range(7)]  # a browser opens six connections to a host
    for tab in tabs:
        tab.goto(page.url)
        tab.evaluate(HIDE, True)
    produce(cluster.bootstrap, "unwatched", [b"meanwhile"])
    page.wait_for_timeout(1000)
    assert page.get_by_text("meanwhile").count() == 0
    page.evaluate(HIDE, False)
    page.get_by_text("meanwhile").wait_for(timeout=10_000)
    produce(cluster.bootstrap, "unwatched", [b"afterwards"])
    page.get_by_text("afterwards").wait_for(timeout=10_000)
    assert page.locator("tbody tr").count() == 2


def test_a_hidden_tail_without_matches_goes_on_at_its_mark(opened: Open, cluster: Cluster) -> None:
    cluster.create_topic("unmatched", partitions=1)
    page = opened("/topics/unmatched/records?live=1&value=match")
    page.wait_for_timeout(1500)
    page.evaluate(HIDE, True)
    produce(cluster.bootstrap, "unmatched", [b"match"])
    with page.expect_request(lambda request: "/live/records/unmatched" in request.url and "after=" in request.url):
        page.evaluate(HIDE, False)
    page.locator("tbody tr").wait_for(timeout=10_000)


def test_a_search_ends_and_can_be_opened(opened: Open) -> None:
    page = opened("/topics/orders/records?json=order%3D42&limit=20")
    page.get_by_text("Done:").wait_for()
    assert page.get_by_text("Stop").count() == 0
    assert page.locator("tbody tr").count() == 6
    page.locator("tbody a").first.click()
    page.get_by_text('"order": 42').wait_for()


@pytest.mark.ci
def test_the_overview_is_live(opened: Open, cluster: Cluster) -> None:
    page = opened("/")
    page.locator(".tile", has_text="topics").wait_for()
    cluster.create_topic("appears", partitions=1)
    page.goto(page.url + "topics")
    page.get_by_text("appears").wait_for(timeout=15_000)


def test_a_topic_is_made_with_clicks(opened: Open) -> None:
    page = opened("/topics")
    page.get_by_text("New topic").click()
    page.get_by_label("Name").fill("clicked")
    page.get_by_text("Show the change").click()
    page.get_by_text("odradek topic create clicked").wait_for()
    page.get_by_text("Do it").click()
    page.get_by_text("Create topic clicked: done").wait_for()
