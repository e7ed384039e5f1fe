"""A console process, and a browser without a screen: cookies, forms and server-sent events over real HTTP."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from confluent_kafka import Producer

from tests.sources import ROOT

TIMEOUT_S = 30
EVENTS = re.compile(r"event: (\S+)\n((?:data: .*\n)*)\n")


class Answer(NamedTuple):
    """A response of the console."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def words(self) -> str:
        """The text that a reader sees, with single spaces."""
        bare = re.sub(r"(?s)<(script|style)\b.*?</\1>|<[^>]*>", " ", self.text)
        return " ".join(html.unescape(bare).split())


class Browser:
    """A browser, with its own cookies."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.cookies: dict[str, str] = {}
        self.last_event_id = ""

    @property
    def host(self) -> str:
        return urlsplit(self.base).netloc

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Returns the response, without following a redirect."""
        return self.send("GET", path, None, headers or {})

    def open(self, path: str) -> Answer:
        """Returns the page at the end of all redirects."""
        answer = self.get(path)
        while answer.status == 303:
            answer = self.get(answer.headers["location"])
        return answer

    def post(self, path: str, fields: Mapping[str, object], headers: Mapping[str, str] | None = None) -> Answer:
        """Sends a form as a page of the console does."""
        origin = {"Origin": self.base, "Sec-Fetch-Site": "same-origin"}
        return self.send("POST", path, urlencode(fields), {**origin, **(headers or {})})

    def change(self, path: str, **fields: object) -> Answer:
        """Sends a form with the secret of this login. Returns the plan, or the page after the change."""
        answer = self.post(path, {"csrf": self.csrf, **fields})
        return self.open(answer.headers["location"]) if answer.status == 303 else answer

    def confirm(self, path: str, plan: Answer, **fields: object) -> Answer:
        """Sends the form of a plan."""
        return self.change(path, **{**hidden_fields(plan.text), **fields})

    @property
    def csrf(self) -> str:
        return hidden_fields(self.get("/").text).get("csrf", "")

    def send(self, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> Answer:
        connection, response = self._send(method, path, body, headers)
        try:
            return Answer(response.status, self._headers(response), response.read().decode())
        finally:
            connection.close()

    @contextmanager
    def events(self, path: str, headers: Mapping[str, str] | None = None) -> Iterator[Iterator[tuple[str, str]]]:
        """Opens server-sent events, and yields their names and contents."""
        connection, response = self._send("GET", path, None, headers or {})
        try:
            assert response.status == 200, response.read()
            yield self._events(response)
        finally:
            connection.close()

    @contextmanager
    def opened(self, path: str) -> Iterator[int]:
        """Opens server-sent events, and yields the status of the response."""
        connection, response = self._send("GET", path, None, {})
        try:
            yield response.status
        finally:
            connection.close()

    def _send(
        self, method: str, path: str, body: str | None, headers: Mapping[str, str]
    ) -> tuple[HTTPConnection, HTTPResponse]:
        connection = HTTPConnection(self.host, timeout=TIMEOUT_S)
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        kind = {"Content-Type": "application/x-www-form-urlencoded"} if body is not None else {}
        connection.request(method, path, body, {**({"Cookie": cookies} if cookies else {}), **kind, **headers})
        response = connection.getresponse()
        for header in response.headers.get_all("set-cookie") or ():
            name, _, value = header.partition(";")[0].partition("=")
            self.cookies[name] = value
        return connection, response

    def _events(self, response: HTTPResponse) -> Iterator[tuple[str, str]]:
        buffer = ""
        while line := response.readline().decode():
            buffer += line
            if line.startswith("id: "):
                self.last_event_id = line[4:].strip()
            if line == "\n":
                for name, data in EVENTS.findall(buffer):
                    yield name, "\n".join(part.removeprefix("data: ") for part in data.splitlines())
                buffer = ""

    @staticmethod
    def _headers(response: HTTPResponse) -> dict[str, str]:
        return {name.lower(): value for name, value in response.headers.items()}


def hidden_fields(page: str) -> dict[str, str]:
    """Returns the hidden fields of a page's forms."""
    pairs = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', page)
    return {html.unescape(name): html.unescape(value) for name, value in pairs}


class ConsoleProcess:
    """A running console."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    @property
    def base(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    def browser(self, *, logged_in: bool = True) -> Browser:
        """Returns a new browser, which has opened the URL with the token."""
        browser = Browser(self.base)
        if logged_in:
            browser.open(self.url.removeprefix(self.base))
        return browser


@contextmanager
def running_console(bootstrap: str, *options: str, errors: Path | None = None) -> Iterator[ConsoleProcess]:
    """Runs `odradek console` on a free port; `errors` is the file of its standard error."""
    with (errors or Path(os.devnull)).open("w") as stderr:
        process = subprocess.Popen(
            console_line("--bootstrap", bootstrap, "--listen", "127.0.0.1:0", *options),
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        )
        try:
            assert process.stdout is not None
            word, _, url = process.stdout.readline().strip().partition(" ")
            assert word == "ready", errors.read_text() if errors else "the console did not start"
            yield ConsoleProcess(process, url)
        finally:
            process.terminate()
            process.wait(TIMEOUT_S)
            if process.stdout is not None:
                process.stdout.close()


def console_line(*words: str) -> Sequence[str]:
    return [sys.executable, "-m", "odradek", "console", *words]


def produce(
    bootstrap: str,
    topic: str,
    values: Sequence[bytes | None],
    partition: int = 0,
    *,
    key: bytes | None = None,
    headers: list[tuple[str, str | bytes | None]] | None = None,
) -> None:
    """Sends records to a partition, and waits until they are written."""
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 32_000_000, "compression.type": "lz4"})
    for value in values:
        producer.produce(topic, value, key, partition, headers=headers)
    assert producer.flush(TIMEOUT_S) == 0
