"""Plays the story of docs/share-debugging.md in chromium, and draws its pictures: a poison record is redelivered, seen,
dead-lettered, and redriven once the consumer is repaired."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import AcknowledgeType, Message, ShareConsumer
from playwright.sync_api import Page, expect

from odradek.testing import Broker
from tests.console.browser import ConsoleProcess, produce
from tests.console.chromium import WIDE, running_chromium
from tests.console.conftest import SCREENSHOTS
from tests.console.test_shares import acquire, member, odradek

pytestmark = pytest.mark.console

TOPIC, GROUP, QUEUE = "orders", "packers", "dlq.orders"
POISON = 2
RECORDS = 8
LIMIT = 3
SOON_MS = 30_000


@pytest.fixture
def page(console: ConsoleProcess) -> Iterator[Page]:
    with running_chromium() as browser:
        opened = browser.new_page(viewport={"width": WIDE, "height": 860})
        opened.goto(console.url)
        yield opened


@pytest.fixture
def draw(page: Page, request: pytest.FixtureRequest, tmp_path: Path) -> Draw:
    return Draw(page, Path(request.config.getoption(SCREENSHOTS, None) or tmp_path))


class Draw:
    """Draws the pictures of the story."""

    def __init__(self, page: Page, folder: Path) -> None:
        self._page = page
        self._folder = folder
        self.count = 0

    def next(self) -> None:
        self.count += 1
        self._page.screenshot(path=self._folder / f"console-story-{self.count}.png")


def prepare(broker: Broker) -> None:
    broker.create_topic(TOPIC, partitions=1)
    broker.create_topic(QUEUE, partitions=1, configs={"errors.deadletterqueue.group.enable": "true"})
    options = ["share.auto.offset.reset=earliest", f"share.delivery.count.limit={LIMIT}"]
    options += ["share.record.lock.duration.ms=60000", "odradek.share.redelivery.backoff.ms=8000"]
    options += [f"errors.deadletterqueue.topic.name={QUEUE}"]
    odradek("config", "set", "group", GROUP, *options, "-b", broker.bootstrap)
    for number in range(RECORDS):
        value = b'{"order": %d, "quantity": %s}' % (number, b'"many"' if number == POISON else b"1")
        produce(broker.bootstrap, TOPIC, [value], key=b"customer-%d" % (number % 3), headers=[("trace", b"4f-21")])


def release(consumer: ShareConsumer, messages: list[Message[bytes, bytes]]) -> None:
    """Does what a consumer does that fails at the poison record."""
    for message in messages:
        is_poison = message.offset() == POISON
        consumer.acknowledge(message, AcknowledgeType.RELEASE if is_poison else AcknowledgeType.ACCEPT)
    consumer.commit_sync(10)


@contextmanager
def busy_member(broker: Broker) -> Iterator[None]:
    """A member that accepts some records, fails at the poison record, and still has the rest."""
    with member(broker, GROUP, TOPIC) as consumer:
        messages = acquire(consumer, RECORDS)
        release(consumer, [message for message in messages if message.offset() in (0, 1, POISON, 4)])
        yield
        for message in messages:
            if message.offset() not in (0, 1, POISON, 4):
                consumer.acknowledge(message, AcknowledgeType.ACCEPT)
        consumer.commit_sync(10)


def fail_until_given_up(broker: Broker) -> None:
    """Lets another member fail at the poison record, until its deliveries are used up."""
    with member(broker, GROUP, TOPIC) as consumer:
        for _ in range(LIMIT - 1):
            release(consumer, acquire(consumer, 1))


def test_a_poison_record_is_seen_and_redriven(page: Page, draw: Draw, console: ConsoleProcess, broker: Broker) -> None:
    prepare(broker)
    with busy_member(broker):
        page.goto(f"{console.base}/group?name={GROUP}")
        poison = page.locator(".strip .cell.delayed")
        expect(poison).to_have_attribute(
            "title",
            f"{POISON}: delayed, delivered 1 times; "
            "it was released, and the pause before its next delivery is not over",
            timeout=SOON_MS,
        )
        expect(page.locator(".cell.acquired").first).to_be_visible()
        first = page.locator("time[data-left]").first.inner_text()
        expect(page.locator("time[data-left]").first).not_to_have_text(first, timeout=SOON_MS)
        draw.next()
        poison.click()
        expect(page.locator("#why")).to_contain_text("the pause before its next delivery is not over")
        expect(page.locator("#why")).to_contain_text('"quantity": "many"')
        page.locator("#why").scroll_into_view_if_needed()
        draw.next()
        fail_until_given_up(broker)
        page.goto(f"{console.base}/share/letters?name={GROUP}")
        deadline = time.monotonic() + 30
        while not page.get_by_role("checkbox").count():
            assert time.monotonic() < deadline
            page.reload()
        expect(page.get_by_text("Offset delivery count exceeded the threshold.")).to_be_visible()
        draw.next()
    redrive(page, draw)
    with member(broker, GROUP, TOPIC) as repaired:
        (message,) = acquire(repaired, 1)
        assert message.value() == b'{"order": 2, "quantity": "many"}'
        assert dict(message.headers() or ())["trace"] == b"4f-21"
        repaired.acknowledge(message, AcknowledgeType.ACCEPT)
        repaired.commit_sync(10)
        page.goto(f"{console.base}/group?name={GROUP}")
        expect(page.get_by_text("All records are done.")).to_be_visible(timeout=SOON_MS)
        draw.next()


def redrive(page: Page, draw: Draw) -> None:
    page.get_by_role("checkbox").check()
    page.get_by_text("Redrive the chosen letters").click()
    expect(page.get_by_text(f"odradek share redrive {GROUP} 0:0")).to_be_visible()
    draw.next()
    page.get_by_text("Do it").click()
    expect(page.get_by_text(f"Redrive 1 dead letter of group {GROUP}: done")).to_be_visible()
    assert page.get_by_role("checkbox").count() == 0
