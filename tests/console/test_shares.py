"""Tests the pages of a share group: live strips, the reason of one record, dead letters, and their redrive."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import AcknowledgeType, Message, ShareConsumer

from commands.shares.records import STORED, UNKNOWN, SharePartitionRecords, ShareRange
from console.pages.shares import GLYPHS, MOST_CELLS, NAMES, strip_of
from odradek.testing import Broker, Cluster
from protocol.types import TopicPartition
from tests.console.browser import Answer, Browser, ConsoleProcess, produce

PLACE = TopicPartition("jobs", 0)
REJECTED = "Offset rejected by client."


def odradek(*words: str, stdin: str = "") -> None:
    line = [sys.executable, "-m", "odradek", *words]
    subprocess.run(line, check=True, capture_output=True, timeout=60, input=stdin, text=True)


@contextmanager
def member(broker: Broker | Cluster, group: str, topic: str) -> Iterator[ShareConsumer]:
    """Opens a stock share consumer that acknowledges explicitly."""
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "share.acknowledgement.mode": "explicit"}
    consumer = ShareConsumer(settings)
    consumer.subscribe([topic])
    try:
        yield consumer
    finally:
        consumer.close()


def acquire(consumer: ShareConsumer, count: int) -> list[Message[bytes, bytes]]:
    """Polls until the consumer has this many records."""
    deadline = time.monotonic() + 60
    messages: list[Message[bytes, bytes]] = []
    while len(messages) < count:
        messages += consumer.poll(0.3)
        assert time.monotonic() < deadline
    return messages


def group(broker: Broker, name: str, *options: str, records: int = 5) -> str:
    """Creates a topic with records, its queue, and a group with the same name that begins at the first record."""
    broker.create_topic(name, partitions=1)
    broker.create_topic(f"dlq.{name}", partitions=1, configs={"errors.deadletterqueue.group.enable": "true"})
    queue = f"errors.deadletterqueue.topic.name=dlq.{name}"
    odradek("config", "set", "group", name, "share.auto.offset.reset=earliest", queue, *options, "-b", broker.bootstrap)
    for number in range(records):
        produce(broker.bootstrap, name, [b"value-%d" % number], key=b"key-%d" % (number % 2))
    return name


def shown(browser: Browser, name: str, text: str) -> str:
    """Returns the first live part that has the text."""
    deadline = time.monotonic() + 30
    with browser.events(f"/live/share?name={name}") as events:
        for event, content in events:
            assert event == "share"
            if text in content:
                return content
            assert time.monotonic() < deadline, content
    raise AssertionError(f"{text} was not shown")


def test_the_strip_shows_what_a_member_has_and_until_when(browser: Browser, broker: Broker) -> None:
    name = group(broker, "shared-live")
    with member(broker, name, name) as consumer:
        messages = acquire(consumer, 5)
        consumer.acknowledge(messages[1], AcknowledgeType.ACCEPT)
        consumer.commit_sync(10)
        content = shown(browser, name, "1: acknowledged")
        assert "0: held by a member, delivered 1 times, member " in content
        assert 'data-left="' in content
        assert "1 of 5" in content
        page = browser.get(f"/group?name={name}")
        assert f'sse-connect="/live/share?name={name}"' in page.text
        assert "dead letters" in page.words


def test_one_record_says_why_it_is_not_delivered(browser: Browser, broker: Broker) -> None:
    name = group(broker, "shared-why", "odradek.share.order.by.key=true", records=4)
    with member(broker, name, name) as consumer:
        assert acquire(consumer, 1)
        where = f"/share/record?name={name}&topic={name}&partition=0&offset="
        held = browser.get(f"{where}0")
        assert held.status == 200
        assert "Held by a member : a member has it" in held.words
        assert "lock ends in" in held.words
        assert "value-0" in held.words
        part = browser.get(f"{where}0", {"HX-Request": "true"})
        assert part.text.lstrip().startswith('<section class="card why"')
    for offset, said in ((99, "no record at this offset yet"), (0, "no member fetches")):
        assert said in eventually(browser, f"{where}{offset}", said)


def eventually(browser: Browser, path: str, text: str) -> str:
    """Returns the words of a page once it has the text."""
    deadline = time.monotonic() + 30
    words = ""
    while text not in words:
        words = browser.get(path).words
        assert time.monotonic() < deadline, words
    return words


@pytest.mark.parametrize(
    "query",
    [
        "topic=shared-bad&partition=0&offset=0",
        "name=shared-bad&partition=0&offset=0",
        "name=shared-bad&topic=shared-bad&partition=-1&offset=0",
        "name=shared-bad&topic=shared-bad&partition=x&offset=0",
        "name=shared-bad&topic=shared-bad&partition=0&offset=-1",
        f"name=shared-bad&topic=shared-bad&partition=0&offset={1 << 63}",
        f"name=shared-bad&topic=shared-bad&partition={1 << 31}&offset=0",
    ],
)
def test_a_wrong_address_is_400(browser: Browser, query: str) -> None:
    assert browser.get(f"/share/record?{query}").status == 400


def test_absent_groups_and_partitions_are_errors(browser: Browser, broker: Broker) -> None:
    assert browser.get("/share/record?name=absent&topic=absent&partition=0&offset=0").status == 409
    assert browser.get("/share/letters?name=absent").status == 404
    name = group(broker, "shared-absent", records=1)
    odradek("share", "consume", name, name, "-n", "1", "-b", broker.bootstrap)
    assert browser.get(f"/share/record?name={name}&topic={name}&partition=7&offset=0").status == 409


def test_a_group_that_read_nothing_says_what_to_do(browser: Browser, broker: Broker) -> None:
    name = group(broker, "shared-empty", records=0)
    with member(broker, name, name) as consumer:
        consumer.poll(0.5)
        content = shown(browser, name, "appear")
        assert "All records are done. New ones appear here" in content


def dead(broker: Broker, name: str, count: int) -> str:
    """Creates a group with this many dead letters."""
    group(broker, name, records=count)
    odradek("share", "consume", name, name, "-n", str(count), "--reject", "-b", broker.bootstrap)
    return name


def letters(browser: Browser, name: str, count: int) -> Answer:
    """Returns the page once it has this many letters."""
    deadline = time.monotonic() + 30
    while (page := browser.get(f"/share/letters?name={name}")).text.count(REJECTED) < count:
        assert time.monotonic() < deadline
    return page


def test_exactly_the_chosen_letters_are_redriven_once(browser: Browser, broker: Broker, audit: Path) -> None:
    name = dead(broker, "shared-dead", 3)
    page = letters(browser, name, 3)
    assert f"{name} -0 offset 1 1 {REJECTED}" in page.words
    plan = browser.change("/share/redrive", **{"name": name, "letter 0:1": "on"})
    assert f"0:1 {name} 0 1 {REJECTED} topic" in plan.words
    assert f"odradek share redrive {name} 0:1 --queue dlq.{name} --yes" in plan.words
    assert "Every group of" in plan.words
    assert end(broker, name) == 3
    done = browser.confirm("/share/redrive", plan)
    assert f"Redrive 1 dead letter of group {name}: done" in done.words
    assert done.text.count('type="checkbox"') == 2
    assert end(broker, name) == 5  # the record, and the transaction's marker
    again = browser.confirm("/share/redrive", plan)
    assert again.status == 409
    assert "0:1: it was redriven already" in again.words
    assert end(broker, name) == 5
    entries = [json.loads(line) for line in audit.read_text().splitlines()]
    entry = next(line for line in entries if line["action"] == "group.redrive" and line["target"] == name)
    assert (entry["result"], entry["effect"][0]["letter"]) == ("done", "0:1")
    assert "value-1" not in json.dumps(entry)


def end(broker: Broker, topic: str) -> int:
    """Returns the end offset of the first partition."""
    words = [sys.executable, "-m", "odradek", "topic", "describe", topic, "-b", broker.bootstrap, "-o", "json"]
    found = subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout
    return int(json.loads(found.splitlines()[0])["partitions"][0]["end"])


def test_a_redriven_record_keeps_its_key_value_and_headers(browser: Browser, broker: Broker) -> None:
    name = group(broker, "shared-kept", records=0)
    produce(broker.bootstrap, name, [b"poison"], key=b"k", headers=[("trace", b"t-1")])
    odradek("share", "consume", name, name, "-n", "1", "--reject", "-b", broker.bootstrap)
    letters(browser, name, 1)
    plan = browser.change("/share/redrive", **{"name": name, "letter 0:0": "on"})
    browser.confirm("/share/redrive", plan)
    record = browser.get(f"/topics/{name}/records/0/1").words
    for text in ("trace t-1", "__dlq.redriven.offset 0", f"__dlq.redriven.topic dlq.{name}", "poison"):
        assert text in record


def test_a_redrive_needs_a_letter_that_is_there(browser: Browser, broker: Broker) -> None:
    name = dead(broker, "shared-unknown", 1)
    letters(browser, name, 1)
    assert "no letter is chosen" in browser.change("/share/redrive", name=name).words
    answer = browser.change("/share/redrive", **{"name": name, "letter 0:77": "on"})
    assert answer.status == 400
    assert "no such dead letter" in answer.words


def test_a_read_only_console_redrives_nothing(reading_console: ConsoleProcess, broker: Broker) -> None:
    browser = reading_console.browser()
    name = dead(broker, "shared-reading", 1)
    page = letters(browser, name, 1)
    assert 'type="checkbox"' not in page.text
    assert "--allow-changes" in page.words
    assert browser.change("/share/redrive", **{"name": name, "letter 0:0": "on", "confirm": "yes"}).status == 403
    assert end(broker, name) == 1


def test_a_group_without_a_queue_says_how_to_set_one(browser: Browser, broker: Broker) -> None:
    broker.create_topic("shared-none", partitions=1)
    produce(broker.bootstrap, "shared-none", [b"x"])
    odradek("config", "set", "group", "shared-none", "share.auto.offset.reset=earliest", "-b", broker.bootstrap)
    odradek("share", "consume", "shared-none", "shared-none", "-n", "1", "-b", broker.bootstrap)
    words = browser.get("/share/letters?name=shared-none").words
    assert "odradek config set group shared-none errors.deadletterqueue.topic.name=TOPIC" in words


def test_a_forged_letter_is_harmless(browser: Browser, broker: Broker) -> None:
    name = dead(broker, "shared-forged", 1)
    letters(browser, name, 1)
    forged = {"topic": "<script>", "partition": "0", "offset": "5", "group": name, "message": "<b>\u202e</b>"}
    internal = {**forged, "topic": "__consumer_offsets"}
    for fields in (forged, internal):
        headers: list[tuple[str, str | bytes | None]] = [
            (f"__dlq.errors.{key}", value.encode()) for key, value in fields.items()
        ]
        produce(broker.bootstrap, f"dlq.{name}", [b"x"], headers=headers)
    page = browser.get(f"/share/letters?name={name}")
    assert "<script>-0" not in page.text
    assert "<b>\u202e" not in page.text
    for letter, said in (("0:1", "no partition"), ("0:2", "internal topic")):
        plan = browser.change("/share/redrive", **{"name": name, f"letter {letter}": "on"})
        assert said in plan.words
        assert browser.confirm("/share/redrive", plan).status == 409


def test_every_kind_of_cell_has_a_sign_of_its_own() -> None:
    assert set(GLYPHS) == set(NAMES)
    assert len(set(GLYPHS.values())) == len(GLYPHS)


def test_a_long_strip_ends_with_a_link_to_the_rest() -> None:
    ranges = [ShareRange(offset, offset, "acquired", 1, "held") for offset in range(MOST_CELLS + 1)]
    strip = strip_of("g", SharePartitionRecords(PLACE, 0, 900, ranges, 500, True))
    assert len(strip.cells) == MOST_CELLS
    assert strip.following == f"/share?name=g&topic=jobs&partition=0&from={MOST_CELLS}"
    short = strip_of("g", SharePartitionRecords(PLACE, 0, 900, ranges[:3], None, True))
    assert short.following == ""


def test_a_cell_says_all_of_its_range() -> None:
    waiting = ShareRange(3, 5, "available", 2, "it waits for offset 1, which has the same key", "KEY_HELD", waits_for=1)
    stored = ShareRange(6, 6, "available", 1, STORED)
    new = ShareRange(7, 9, "new", 0, UNKNOWN)
    first, second, third = strip_of("g", SharePartitionRecords(PLACE, 3, 10, [waiting, stored, new])).cells
    assert first.label == (
        "3 to 5: waits for its key, delivered 2 times; it waits for offset 1, which has the same key"
    )
    assert (first.glyph, second.glyph, third.glyph) == ("K", "A", "·")
    assert second.label == f"6: available, delivered 1 times; {STORED}"
