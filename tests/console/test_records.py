"""Tests the records of a topic: order, position, filters, search, live tail, one record, downloads, and producing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, TopicPartition

from commands.errors import CommandError
from console.filters import filter_of, json_condition
from odradek.testing import Broker
from protocol.records.record import Record
from tests.console.browser import Browser, console_line, produce, running_console

DOCUMENT = {"order": {"id": 7, "open": True, "lines": [{"sku": "a-1"}], "note": None}, "total": 12.5}


@pytest.mark.parametrize(
    "expression",
    ["total", "$.order.lines[0].sku", "order.id=7", "order.open = true", "total>12", "total < 100", "order.note=null",
     "order.lines[0].sku ~ -1", "order.id!=8", "order.lines[0].sku='a-1'"],
)  # fmt: skip
def test_a_json_expression_is_met(expression: str) -> None:
    assert json_condition(expression)(DOCUMENT)


@pytest.mark.parametrize(
    "expression", ["absent", "order.lines[9]", "order.id=8", "total>13", "order.id.deeper", "absent!=1", "order[0]"]
)
def test_a_json_expression_is_not_met(expression: str) -> None:
    assert not json_condition(expression)(DOCUMENT)
    assert not json_condition(expression)(None)


@pytest.mark.parametrize("expression", ["=1", "a[", "a[x]", "]", "a..b="])
def test_an_expression_that_is_none_is_rejected(expression: str) -> None:
    with pytest.raises(CommandError, match="expected a path"):
        json_condition(expression)


def passes(record: Record, **conditions: str) -> bool:
    return filter_of(conditions).passes(record, record.key, record.value)


def test_all_conditions_must_be_met() -> None:
    record = Record(key=b"k-1", value=b'{"a": 1}', headers=[("h", b"x"), ("n", None)])
    assert passes(record, key="k-", value="a", header="h=x", json="a=1")
    assert passes(record, header="n=")
    assert not passes(record, key="k-", json="a=2")
    assert not passes(Record(), value="x")
    assert not filter_of({})


class Topic(NamedTuple):
    """A topic with records 0 to 99 in partition 0, and 100 to 109 in partition 1."""

    name: str

    def path(self, query: str = "") -> str:
        return f"/topics/{self.name}/records?{query}"


@pytest.fixture(scope="module")
def topic(broker: Broker) -> Topic:
    name = "records-read"
    broker.create_topic(name, partitions=2)
    produce(broker.bootstrap, name, [b'{"n": %d}' % number for number in range(100)], key=b"key-a")
    produce(broker.bootstrap, name, [b"text-%d" % number for number in range(100, 110)], 1, headers=[("trace", b"t-1")])
    return Topic(name)


def offsets(text: str) -> list[str]:
    """Returns PARTITION/OFFSET of the records on a page, in order."""
    return [
        part.partition('"')[0] for part in text.split("/records-read/records/")[1:] if "/" in part.partition('"')[0]
    ]


def test_the_newest_come_first(browser: Browser, topic: Topic) -> None:
    assert offsets(browser.get(topic.path("partitions=0&limit=20")).text) == [f"0/{at}" for at in range(99, 79, -1)]
    assert offsets(browser.get(topic.path("limit=20")).text)[0] == "1/9"


def test_the_oldest_come_first(browser: Browser, topic: Topic) -> None:
    page = browser.get(topic.path("order=oldest&from=5&limit=20&partitions=0"))
    assert offsets(page.text) == [f"0/{at}" for at in range(5, 25)]
    assert offsets(browser.get(topic.path("order=oldest&from=%2B95&limit=50&partitions=0")).text)[0] == "0/95"
    assert "no records here" in browser.get(topic.path("order=oldest&from=end")).words


def test_a_time_is_a_position(browser: Browser, topic: Topic) -> None:
    assert offsets(browser.get(topic.path("order=oldest&from=@-1h&partitions=1")).text)[0] == "1/0"


@pytest.mark.parametrize(
    "query",
    ["from=soon", "partitions=7", "partitions=x", "limit=0", "limit=501", "limit=x", "order=random", "isolation=none",
     "decode=xml", "json=%3D1", "from=99999999999999999999"],
)  # fmt: skip
def test_a_wrong_parameter_is_an_error_in_words(browser: Browser, topic: Topic, query: str) -> None:
    answer = browser.get(topic.path(query))
    assert answer.status == 400
    assert "expected" in answer.words or "has partitions" in answer.words


def search(browser: Browser, topic: Topic, query: str) -> tuple[list[str], str]:
    """Returns the records that a search finds, in order, and its last progress."""
    found: list[str] = []
    last = ""
    with browser.events(f"/live/records/{topic.name}?{query}") as events:
        for name, content in events:
            found += offsets(content) if name == "records" else []
            last = content if name == "progress" else last
            if name == "done":
                return found, last
    raise AssertionError("the search did not end")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("json=n%3D42", ["0/42"]),
        ("json=n%3E97", ["0/99", "0/98"]),
        ("json=n%3E97&order=oldest", ["0/98", "0/99"]),
        ("value=text-105", ["1/5"]),
        ("key=key-a&json=n%3D1", ["0/1"]),
        ("header=trace%3Dt-1&value=109", ["1/9"]),
        ("value=nowhere", []),
        ("json=n%3E10&limit=2", ["0/99", "0/98"]),
    ],
)
def test_a_search_finds_records(browser: Browser, topic: Topic, query: str, expected: list[str]) -> None:
    found, progress = search(browser, topic, query)
    assert found == expected
    assert "records read" in progress


def test_a_page_with_a_filter_searches_live(browser: Browser, topic: Topic) -> None:
    page = browser.get(topic.path("json=n%3D42")).text
    assert f'sse-connect="/live/records/{topic.name}?json=n%3D42"' in page
    assert not offsets(page)


def test_a_search_reads_many_windows_and_partitions(browser: Browser, broker: Broker) -> None:
    broker.create_topic("records-many", partitions=3)
    for partition in range(3):
        produce(broker.bootstrap, "records-many", [b"%d-%d" % (partition, at) for at in range(7000)], partition)
    with browser.events("/live/records/records-many?value=-6&limit=500") as events:
        progress = [content for name, content in iter_until_done(events) if name == "progress"]
    assert "500 matches" in progress[-1]
    with browser.events("/live/records/records-many?value=1-33&limit=500") as events:
        contents = dict(iter_until_done(events))
    assert "21\u202f000 of 21\u202f000 records read" in contents["progress"]
    assert "111 matches" in contents["progress"]


def iter_until_done(events: Iterator[tuple[str, str]]) -> list[tuple[str, str]]:
    """Returns all events of a search."""
    seen: list[tuple[str, str]] = []
    for name, content in events:
        seen.append((name, content))
        if name == "done":
            return seen
    raise AssertionError("the search did not end")


def test_a_live_tail_has_new_records_only(browser: Browser, broker: Broker) -> None:
    broker.create_topic("records-live", partitions=1)
    produce(broker.bootstrap, "records-live", [b"before"])
    assert "Live:" in browser.get("/topics/records-live/records?live=1").words
    with browser.events("/live/records/records-live?live=1&value=wanted") as events:
        produce(broker.bootstrap, "records-live", [b"other", b"wanted-1"])
        content = next(content for name, content in events if name == "records")
    assert "wanted-1" in content
    assert "other" not in content
    assert "before" not in content


def test_a_live_tail_goes_on_at_a_position(browser: Browser, broker: Broker) -> None:
    broker.create_topic("records-resumed", partitions=1)
    produce(broker.bootstrap, "records-resumed", [b"seen", b"missed"])
    with browser.events("/live/records/records-resumed?live=1&from=1") as events:
        content = next(content for name, content in events if name == "records")
    assert "missed" in content
    assert "seen" not in content


def test_one_record_has_its_own_page(browser: Browser, topic: Topic) -> None:
    words = browser.get(f"/topics/{topic.name}/records/0/42").words
    assert "key-a" in words
    assert '{ "n": 42 }' in words
    assert "7b22 6e22" in browser.get(f"/topics/{topic.name}/records/0/42?decode=hex").words
    assert browser.get(f"/topics/{topic.name}/records/0/100").status == 404
    assert browser.get(f"/topics/{topic.name}/records/9/0").status == 400
    assert browser.get(f"/topics/{topic.name}/records/0/x").status == 400


def test_a_value_is_downloaded_as_it_is(browser: Browser, topic: Topic) -> None:
    answer = browser.get(f"/topics/{topic.name}/records/0/42/download")
    assert (answer.text, answer.headers["content-type"]) == ('{"n": 42}', "application/octet-stream")
    assert answer.headers["content-disposition"].startswith("attachment")
    assert browser.get(f"/topics/{topic.name}/records/0/42/download?part=key").text == "key-a"
    assert browser.get(f"/topics/{topic.name}/records/1/0/download?part=key").status == 404


def test_matching_records_are_downloaded_as_lines(browser: Browser, topic: Topic) -> None:
    answer = browser.get(f"/topics/{topic.name}/export?key=key-a")
    rows = [json.loads(line) for line in answer.text.splitlines()]
    assert [row["offset"] for row in rows] == list(range(100))
    assert rows[7]["payload"] == '{"n": 7}'


def test_a_page_has_command_lines(browser: Browser, broker: Broker, topic: Topic) -> None:
    words = browser.get(topic.path("order=oldest&from=5&partitions=0&limit=20")).words
    assert f"odradek consume {topic.name} -b {broker.bootstrap} --from 5 -p 0 -n 20 --exit-at-end" in words
    assert f"kcat -b {broker.bootstrap} -C -t {topic.name} -p 0 -o 5 -c 20 -e" in words


def test_a_record_is_produced(browser: Browser, broker: Broker, audit: Path) -> None:
    broker.create_topic("records-made", partitions=2)
    fields = {"key": "k", "value": "line 1\r\nline 2", "headers": "trace=abc\r\n", "partition": "1"}
    page = browser.change("/topics/records-made/produce", **fields)
    assert "written to partition 1 at offset 0" in page.words
    assert "trace=abc" in page.words
    assert browser.get("/topics/records-made/records/1/0/download").text == "line 1\nline 2"
    last = json.loads(audit.read_text().splitlines()[-1])
    assert (last["action"], last["effect"][0]["value_bytes"]) == ("record.produce", 13)
    assert "line" not in json.dumps(last)


def test_a_tombstone_and_bytes_are_produced(browser: Browser, broker: Broker) -> None:
    broker.create_topic("records-odd", partitions=1)
    browser.change("/topics/records-odd/produce", key="k", value_is_null="1")
    browser.change("/topics/records-odd/produce", value="00ff", value_encoding="hex")
    assert "tombstone" in browser.get("/topics/records-odd/records/0/0").words
    assert "00ff" in browser.get("/topics/records-odd/records/0/1").words


@pytest.mark.parametrize(
    "fields",
    [{"value": "zz", "value_encoding": "hex"}, {"value": "?", "value_encoding": "base64"}, {"value_encoding": "rot13"},
     {"partition": "7", "value": "x"}, {"partition": "x"}, {"headers": "no equals sign"}],
)  # fmt: skip
def test_a_record_that_is_none_is_not_produced(browser: Browser, broker: Broker, fields: dict[str, str]) -> None:
    broker.create_topic(f"records-bad-{abs(hash(str(fields)))}", partitions=1)
    assert browser.change(f"/topics/records-bad-{abs(hash(str(fields)))}/produce", **fields).status in (400, 409)


def test_internal_topics_have_field_names(browser: Browser, broker: Broker, topic: Topic) -> None:
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "records-readers"})
    reader.commit(offsets=[TopicPartition(topic.name, 0, 7)], asynchronous=False)
    reader.close()
    page = browser.get("/topics/__consumer_offsets/records?limit=500").words
    assert "OffsetCommitKey(group='records-readers', topic='records-read', partition=0)" in page


def test_masks_hide_before_anything_is_shown_or_found(broker: Broker) -> None:
    broker.create_topic("records-masked", partitions=1)
    produce(broker.bootstrap, "records-masked", [b"card 4111-1111"], key=b"4111-1111", headers=[("card", b"4111-1111")])
    with running_console(broker.bootstrap, "--mask", r"\d{4}-\d{4}") as console:
        browser = console.browser()
        for path in ("", "/0/0", "/0/0?decode=hex", "/0/0/download", "/0/0/download?part=key"):
            page = browser.get(f"/topics/records-masked/records{path}").text
            assert "4111-1111" not in page
            assert "3431 3131" not in page
        assert "4111" not in browser.get("/topics/records-masked/export").text
        with browser.events("/live/records/records-masked?value=4111") as events:
            assert "0 matches" in dict(iter_until_done(events))["progress"]


def test_a_mask_that_is_no_pattern_stops_the_start() -> None:
    ended = subprocess.run(console_line("--mask", "("), capture_output=True, text=True, timeout=30)
    assert ended.returncode == 2
    assert "--mask (" in ended.stderr
