"""Tests the pages of topics: the list, partitions, configs, and each change with its plan."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest

from odradek.testing import Broker
from tests.console.browser import Answer, Browser, ConsoleProcess, produce


def listed(browser: Browser, path: str, expected: str) -> Answer:
    """Returns the list once a sample of the cluster has the expected text."""
    with browser.events(path.replace("/topics", "/live/topics", 1)) as events:
        for _, content in islice(events, 5):
            if expected in content:
                break
    answer = browser.get(path)
    assert expected in answer.text
    return answer


def test_the_list_has_records_and_sizes(browser: Browser, broker: Broker) -> None:
    broker.create_topic("list-a", partitions=3)
    produce(broker.bootstrap, "list-a", [b"x"] * 5)
    page = listed(browser, "/topics?q=list-", "list-a")
    assert "list-a 3 1 0 5" in page.words


def test_a_search_and_an_order_are_in_the_url(browser: Browser, broker: Broker) -> None:
    for name, count in (("order-one", 1), ("order-two", 2)):
        broker.create_topic(name, partitions=count)
    listed(browser, "/topics", "order-two")
    falling = browser.get("/topics?q=order-&sort=-partitions").words
    assert falling.index("order-two") < falling.index("order-one")
    rising = browser.get("/topics?q=order-&sort=partitions").words
    assert rising.index("order-one") < rising.index("order-two")
    assert "No topic has “zebra”" in browser.get("/topics?q=zebra").words


@pytest.mark.parametrize("query", ["sort=colour", "page=x", "page=0", "page=99999999999999999999"])
def test_a_wrong_url_is_an_error_in_words(browser: Browser, query: str) -> None:
    answer = browser.get(f"/topics?{query}")
    assert answer.status == 400
    assert "expected" in answer.words


def test_internal_topics_are_hidden_at_first(browser: Browser, broker: Broker) -> None:
    browser.get("/topics")
    assert "__consumer_offsets" not in browser.get("/topics").text
    broker.create_topic("internal-shown")
    listed(browser, "/topics?internal=1", "internal-shown")


def test_a_topic_has_its_partitions(browser: Browser, broker: Broker) -> None:
    broker.create_topic("parts", partitions=2)
    produce(broker.bootstrap, "parts", [b"a", b"b"], partition=1)
    words = browser.get("/topics/parts").words
    assert "0 1 0 1 0 0 0" in words
    assert "1 1 0 1 0 2 2" in words


def test_a_topic_that_is_not_there_is_404(browser: Browser) -> None:
    answer = browser.get("/topics/absent")
    assert answer.status == 404
    assert "UNKNOWN_TOPIC_OR_PARTITION" in answer.words


def test_creating_shows_the_plan_first(browser: Browser, broker: Broker) -> None:
    fields = {"topic": "made", "partitions": "4", "configs": "retention.ms=60000\ncleanup.policy=compact"}
    plan = browser.change("/create-topic", **fields)
    assert "odradek topic create made -p 4 -c retention.ms=60000 -c cleanup.policy=compact" in plan.words
    assert browser.get("/topics/made").status == 404
    page = browser.confirm("/create-topic", plan)
    assert "Create topic made: done" in page.words
    assert "Create topic made: done" not in browser.get("/topics/made").words
    assert "60000 topic" in browser.get("/topics/made/configs").words


@pytest.mark.parametrize(
    "fields",
    [
        {"topic": "bad name!"},
        {"topic": ""},
        {"topic": "many", "replicas": "0"},
        {"topic": "none", "partitions": "0"},
        {"topic": "odd", "configs": "nonsense"},
        {"topic": "odd", "configs": "no.such.config=1"},
    ],
)
def test_a_topic_that_the_cluster_rejects_is_not_planned(browser: Browser, fields: dict[str, str]) -> None:
    answer = browser.change("/create-topic", **fields)
    assert answer.status in (400, 409)
    assert 'name="confirm"' not in answer.text


def test_a_config_is_changed_and_unset(browser: Browser, broker: Broker, audit: Path) -> None:
    broker.create_topic("tuned")
    path = "/topics/tuned/configs"
    assert 'value="retention.ms"' in browser.get(f"{path}?edit=retention.ms").text
    plan = browser.change(path, config="retention.ms", value="1234567")
    assert "Config Before Source After retention.ms 604800000 default 1234567" in plan.words
    assert "1234567 topic" in browser.confirm(path, plan).words
    last = json.loads(audit.read_text().splitlines()[-1])
    assert (last["action"], last["target"], last["result"]) == ("topic.alter", "tuned", "done")
    assert last["effect"][0]["after"] == "1234567"
    plan = browser.change(path, config="retention.ms", unset="yes")
    assert "1234567 topic (the default)" in plan.words
    assert "1234567" not in browser.confirm(path, plan).words


@pytest.mark.parametrize(("config", "value"), [("retention.ms", "soon"), ("no.such", "1")])
def test_a_wrong_config_is_not_planned(browser: Browser, broker: Broker, config: str, value: str) -> None:
    broker.create_topic(f"wrong-{config}")
    assert browser.change(f"/topics/wrong-{config}/configs", config=config, value=value).status in (400, 409)


def test_growing_needs_the_name(browser: Browser, broker: Broker) -> None:
    broker.create_topic("grown", partitions=1)
    plan = browser.change("/topics/grown/grow", partitions="3")
    assert browser.confirm("/topics/grown/grow", plan, typed="other").status == 400
    page = browser.confirm("/topics/grown/grow", plan, typed="grown")
    assert "Grow topic grown: done" in page.words
    assert browser.change("/topics/grown/grow", partitions="2").status == 409


def test_trimming_deletes_what_was_shown(browser: Browser, broker: Broker) -> None:
    broker.create_topic("trimmed", partitions=1)
    produce(broker.bootstrap, "trimmed", [b"x"] * 10)
    plan = browser.change("/topics/trimmed/trim", to="-4")
    assert "0 0 6 6" in plan.words
    produce(broker.bootstrap, "trimmed", [b"x"] * 10)
    page = browser.confirm("/topics/trimmed/trim", plan, typed="trimmed")
    assert "0 1 0 1 6 20 14" in page.words
    assert browser.change("/topics/trimmed/trim", to="yesterday").status == 400


def test_deleting_needs_the_name(browser: Browser, broker: Broker) -> None:
    broker.create_topic("doomed")
    plan = browser.change("/topics/doomed/delete")
    assert "All its records are lost" in plan.words
    assert browser.confirm("/topics/doomed/delete", plan, typed="").status == 400
    assert browser.get("/topics/doomed").status == 200
    browser.confirm("/topics/doomed/delete", plan, typed="doomed")
    assert browser.get("/topics/doomed").status == 404


def test_a_read_only_console_offers_no_change(reading_console: ConsoleProcess, broker: Broker) -> None:
    broker.create_topic("kept")
    browser = reading_console.browser()
    for path in ("/topics", "/topics/kept", "/topics/kept/configs", "/topics/kept/operations"):
        page = browser.get(path).text
        assert "read-only" in page
        assert "New topic" not in page
    for path in ("/topics/kept/delete", "/topics/kept/grow", "/topics/kept/trim", "/topics/kept/configs"):
        answer = browser.change(path, typed="kept", confirm="yes", partitions="9", to="end", config="retention.ms")
        assert answer.status == 403
    assert browser.get("/topics/kept").status == 200
