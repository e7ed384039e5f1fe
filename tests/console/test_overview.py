"""Tests the overview: numbers, health, brokers and controllers, live."""

from __future__ import annotations

import json
from itertools import islice

from odradek.testing import Broker
from tests.console.browser import Browser, ConsoleProcess, running_console


def test_it_shows_brokers_controllers_and_health(browser: Browser, broker: Broker) -> None:
    broker.create_topic("seen", partitions=2)
    with browser.events("/live/overview") as events:
        for name, content in islice(events, 10):
            assert name == "overview"
            if "No faults" in content or "<code" in content:
                break
    words = browser.get("/").words
    assert f"{broker.bootstrap} – active" in words
    assert "Controllers leader 1" in words


def test_the_chart_has_a_point_for_each_sample(browser: Browser) -> None:
    with browser.events("/live/overview") as events:
        list(islice(events, 2))
    chart = json.loads(browser.get("/charts/throughput").text)
    assert len(chart["x"]) == len(chart["series"][0]["y"]) >= 1


def test_a_cluster_that_cannot_be_reached_is_said() -> None:
    with running_console("127.0.0.1:1") as console:
        browser = console.browser()
        with browser.events("/live/overview") as events:
            next(events)
        page = browser.get("/")
        assert page.status == 200
        assert "could not be read" in page.words
        assert "ODRADEK_BOOTSTRAP" in page.words
        answer = browser.get("/topics/orders")
        assert answer.status == 503


def test_the_console_outlives_its_cluster() -> None:
    with Broker() as own:
        bootstrap = own.bootstrap
        with running_console(bootstrap) as console:
            browser = console.browser()
            own.create_topic("before")
            assert "before" in browser.get("/topics/before").words
            own.close()
            assert browser.get("/topics/before").status == 503
            assert browser.get("/").status == 200


def test_a_page_that_is_not_there_is_404(browser: Browser, console: ConsoleProcess) -> None:
    assert browser.get("/nothing").status == 404
    assert browser.get("/static/../command.py").status == 404
    assert browser.get("/static/%2e%2e/command.py").status == 404
