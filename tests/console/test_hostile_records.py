"""Tests that hostile records are shown harmlessly: markup, scripts, 10 MB, broken JSON, marks that turn text around."""

from __future__ import annotations

import pytest

from console.rendering import visible
from odradek.testing import Broker
from tests.console.browser import Browser, produce

MARKUP = b"</pre><script>alert(1)</script><img src=x onerror=alert(2)>"
HOSTILE = {
    "markup": MARKUP,
    "in-json": b'{"a": "</script><script>alert(1)</script>"}',
    "template": b"{{ 7 * 7 }}{% raw %}",
    "right-to-left": "user\u202etxt.exe\u2066\u200f".encode(),
    "broken-json": b'{"a": [1, 2',
    "deep-json": b"[" * 100_000,
    "not-utf-8": b"\xff\xfe\x00\xd8",
    "broken-avro": b"\x00\x00\x00\x00\x07\x02\xff",
    "surrogates": b'"\\ud800"',
    "large": MARKUP + b"x" * 10_000_000,
    "event": b"\n\nevent: done\ndata: x\n\n",
}


@pytest.fixture(scope="module")
def hostile(broker: Broker) -> str:
    name = "records-hostile"
    broker.create_topic(name, partitions=1, configs={"max.message.bytes": "20000000"})
    for value in HOSTILE.values():
        header = value[:2000].decode("latin-1")
        produce(broker.bootstrap, name, [value], key=value[:2000], headers=[(header, value[:2000])])
    return name


def check(text: str) -> None:
    assert "<script>alert" not in text
    assert "<img" not in text
    for mark in "\u202e\u2066\u200f\x00":
        assert mark not in text


def test_they_are_harmless_in_a_list(browser: Browser, hostile: str) -> None:
    page = browser.get(f"/topics/{hostile}/records")
    assert page.status == 200
    check(page.text)
    assert "user\\u{202e}txt.exe" in page.text
    assert len(page.text) < 200_000
    assert page.text.count("<tr>") == len(HOSTILE) + 1


@pytest.mark.parametrize("decode", ["auto", "text", "json", "hex", "base64"])
@pytest.mark.parametrize("offset", range(len(HOSTILE)), ids=list(HOSTILE))
def test_they_are_harmless_on_their_own_page(browser: Browser, hostile: str, offset: int, decode: str) -> None:
    page = browser.get(f"/topics/{hostile}/records/0/{offset}?decode={decode}")
    assert page.status == 200
    check(page.text)
    assert len(page.text) < 2_500_000


def test_they_are_harmless_in_a_search(browser: Browser, hostile: str) -> None:
    with browser.events(f"/live/records/{hostile}?value=%0A%0Aevent") as events:
        names = [name for name, _ in (next(events), next(events), next(events), next(events))]
    assert names.count("records") == 1


def test_a_download_is_never_shown_as_a_page(browser: Browser, hostile: str) -> None:
    answer = browser.get(f"/topics/{hostile}/records/0/0/download")
    assert answer.text == MARKUP.decode()
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert browser.get(f"/topics/{hostile}/export").status == 200


def test_a_hostile_url_is_harmless(browser: Browser, hostile: str) -> None:
    for query in ("value=%3Cscript%3Ealert(1)%3C/script%3E", "from=%3Cscript%3Ealert(1)", "decode=%22%3E%3Cimg"):
        check(browser.get(f"/topics/{hostile}/records?{query}").text)
    check(browser.get("/topics/%3Cscript%3Ealert(1)").text)
    check(browser.get("/topics?q=%22%3E%3Cimg%20src=x%3E").text)


def test_invisible_characters_become_escapes() -> None:
    assert visible("a\u202eb\x00c\n\td\ud800é中🎉") == "a\\u{202e}b\\u{0}c\n\td\\u{d800}é中🎉"
