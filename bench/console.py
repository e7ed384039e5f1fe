"""The cost of the console: its pages with ten thousand partitions, a hundred live tails beside producers, and a search
in ten million records. `make bench-console`.

    python -m bench.console [--parts PART …] [--rounds N] [--seconds S] [--records N] [--pure] [--results FOLDER]

Broker and console are the wheel's, with the compiled core, or with --pure the source tree's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from bench.cost import memory_of, spent
from bench.figures import MB, Sample
from bench.load import module
from bench.peers.brokers import Odradek, PurePython
from bench.results import RESULTS, machine
from bench.scrapes import create_topics, probe
from bench.trial import unwind_at_sigterm

FOLDER: Final = "console"
TOPICS: Final = 1_000
ROUNDS: Final = 5
SECONDS: Final = 20.0
TABS: Final = 100
RECORDS: Final = 10_000_000
BATCH: Final = 100_000
NEEDLE: Final = 4_999_999
"""The record that the search finds, in the middle."""
CHROMIUM: Final = "/usr/bin/chromium"
PAINTS: Final = 9
"""Number of times that each page is painted."""
PATHS: Final = ("/", "/topics", "/topics?sort=-records&page=3", "/topics/topic-7", "/topics/topic-7/records", "/groups")
SEARCH: Final = "/live/records/lines?order=oldest&value="
SOON_S: Final = 60.0
SETTLE_S: Final = 3.0
FIRST_PAINT: Final = """() => new Promise((resolve) => {
  const look = () => {
    const [paint] = performance.getEntriesByName("first-contentful-paint");
    paint ? resolve(paint.startTime) : setTimeout(look, 20);
  };
  look();
})"""


class BenchConsole:
    """A running console, which reads the broker, and one login."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self._process = process
        self.url = url
        parts = urlsplit(url)
        self.base = f"{parts.scheme}://{parts.netloc}"
        self._host = parts.netloc
        self._cookie = ""
        connection, response = self.send(f"/?{parts.query}")
        self._cookie = (response.getheader("set-cookie") or "").partition(";")[0]
        connection.close()

    def send(self, path: str) -> tuple[HTTPConnection, HTTPResponse]:
        """Returns the connection and the response, whose body is not read yet."""
        connection = HTTPConnection(self._host, timeout=SOON_S)
        connection.request("GET", path, headers={"Cookie": self._cookie})
        return connection, connection.getresponse()

    def get(self, path: str) -> str:
        """Returns the text of a page."""
        connection, response = self.send(path)
        try:
            text = response.read().decode()
        finally:
            connection.close()
        if response.status != 200:
            raise SystemExit(f"{path}: status {response.status}")
        return text

    def cpu_s(self) -> float:
        return spent(self._process.pid).seconds

    def memory_mb(self) -> tuple[float, float]:
        """Returns the resident memory, now and at its peak."""
        memory = memory_of(Path(f"/proc/{self._process.pid}/status").read_text())
        return memory.resident_bytes / MB, memory.peak_bytes / MB


@contextmanager
def running_console(broker: Odradek) -> Iterator[BenchConsole]:
    """Runs `odradek console` on a free port."""
    command = [broker.program, "console", "--bootstrap", broker.bootstrap, "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        word, _, url = process.stdout.readline().strip().partition(" ")
        if word != "ready":
            raise SystemExit("the console did not start")
        yield BenchConsole(process, url)
    finally:
        process.terminate()
        process.wait()


class Measured(NamedTuple):
    """The lines and the figures of a part."""

    lines: Sequence[str]
    figures: Mapping[str, object]


# Pages.


def pages(broker: Odradek, options: argparse.Namespace) -> Measured:
    """Measures each page: processor time of the console, and first paint in chromium."""
    from playwright.sync_api import sync_playwright

    create_topics(broker.bootstrap, options.topics)
    lines, figures = list[str](), dict[str, object]()
    with running_console(broker) as console, sync_playwright() as started:
        _wait_for(lambda: "Health" in (text := console.get("/")) and "Examining" not in text)
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = chromium.new_page()
        page.goto(console.url)
        for path in PATHS:
            paints = []
            for _ in range(PAINTS):
                page.goto(console.base + path)
                paints.append(float(page.evaluate(FIRST_PAINT)))
            page.goto("about:blank")
            cpu_ms, answer_ms = _cost(console, path)
            figures[path] = {"first_paint_ms": paints, "cpu_ms": cpu_ms, "answer_ms": answer_ms}
            lines.append(
                f"{path}: first paint {median(paints):.0f} ms ({max(paints):.0f} at most), answer "
                f"{median(answer_ms):.0f} ms ({max(answer_ms):.0f} at most), console {cpu_ms:.1f} ms of CPU"
            )
        chromium.close()
        resident, peak = console.memory_mb()
        figures["memory_mb"], figures["peak_mb"] = resident, peak
        lines.append(f"memory {resident:.0f} MB ({peak:.0f} at its peak)")
    return Measured(lines, figures)


def _cost(console: BenchConsole, path: str) -> tuple[float, list[float]]:
    """Returns the processor milliseconds of a page, without the reading of the cluster beside it, and the milliseconds
    of each answer."""
    before, began = console.cpu_s(), time.monotonic()
    time.sleep(SETTLE_S)
    idle = (console.cpu_s() - before) / (time.monotonic() - began)
    before, began, answers = console.cpu_s(), time.monotonic(), list[float]()
    for _ in range(4 * PAINTS):
        sent = time.monotonic()
        console.get(path)
        answers.append((time.monotonic() - sent) * 1000)
    spent_s = console.cpu_s() - before - idle * (time.monotonic() - began)
    return max(spent_s, 0.0) * 1000 / len(answers), answers


def _wait_for(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON_S
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit("the console has not read the cluster in time")
        time.sleep(0.5)


# Tails.


class Watching(NamedTuple):
    """Rounds of the producer, with the tabs that were open meanwhile."""

    title: str
    path: str
    """The tail of each tab; empty if none is open."""
    samples: list[Sample]
    shares: list[tuple[float, float]]
    """The cores that the broker and the console had in use in each round."""
    seen: list[tuple[int, int]]
    """The records and the updates that each tab got in each round."""

    def of(self, figure: str) -> float:
        return median(sample[figure] for sample in self.samples)

    def __str__(self) -> str:
        times = ", ".join(f"{key[:-3]} {self.of(key):.2f} ms" for key in ("p50_ms", "p99_ms", "p999_ms"))
        broker, console = (median(shares) for shares in zip(*self.shares, strict=True))
        return f"{self.title}: {times}; CPU of broker {broker:.1%}, of console {console:.1%}"


def tails(broker: Odradek, options: argparse.Namespace) -> Measured:
    """Measures a producer without tabs, beside tabs with live tails of a topic without new records, and beside tabs
    with live tails of the topic that it writes to."""
    create_topics(broker.bootstrap, 2)
    kinds = [
        Watching(title, path, [], [], [])
        for title, path in (
            ("without tabs", ""),
            (f"{TABS} tabs, no new records", "/live/records/topic-1?live=1"),
            (f"{TABS} tabs", "/live/records/topic-0?live=1"),
        )
    ]
    with running_console(broker) as console:
        for number in range(options.rounds + 1):
            for kind in kinds:
                with _open_tabs(console, kind.path) as seen:
                    cpu_s, began = (spent(broker.pid).seconds, console.cpu_s()), time.monotonic()
                    sample = probe(broker.bootstrap, options.seconds)
                    took_s, now_s = time.monotonic() - began, (spent(broker.pid).seconds, console.cpu_s())
                if number:  # the first round of each kind warms up
                    kind.samples.append(sample)
                    kind.shares.append(((now_s[0] - cpu_s[0]) / took_s, (now_s[1] - cpu_s[1]) / took_s))
                    kind.seen.extend(seen)
        resident, peak = console.memory_mb()
    without, *others = kinds
    ratios = {
        kind.title: median(
            one["p99_ms"] / other["p99_ms"] for one, other in zip(kind.samples, without.samples, strict=True)
        )
        for kind in others
    }
    records, updates = ([entry[at] for entry in kinds[-1].seen] for at in (0, 1))
    lines = [*map(str, kinds), *(f"{title}: p99 ×{ratio:.2f}" for title, ratio in ratios.items())]
    lines.append(
        f"{len(without.samples)} rounds of {options.seconds:.0f} s of each kind; each tab got {min(records)} to "
        f"{max(records)} records in {min(updates)} to {max(updates)} updates a round; "
        f"console {resident:.0f} MB ({peak:.0f} at its peak)"
    )
    figures = {"kinds": [kind._asdict() for kind in kinds], "memory_mb": resident, "peak_mb": peak}
    return Measured(lines, {**figures, "p99_ratio": ratios})


@contextmanager
def _open_tabs(console: BenchConsole, path: str) -> Iterator[list[tuple[int, int]]]:
    """Opens the tabs in another process, unless the path is empty. After its end, the list has the number of records
    and updates of each tab."""
    seen: list[tuple[int, int]] = []
    if not path:
        yield seen
        return
    command = module("bench.clients.tabs", console.url, path, str(TABS))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tabs:
        assert tabs.stdout is not None
        assert tabs.stdin is not None
        tabs.stdout.readline()
        yield seen
        with suppress(PermissionError):  # else it ends late on a busy machine
            os.sched_setscheduler(tabs.pid, os.SCHED_OTHER, os.sched_param(0))
        tabs.stdin.close()
        seen += json.loads(tabs.stdout.read())


# Search.


def search(broker: Odradek, options: argparse.Namespace) -> Measured:
    """Measures a search of all records of a topic, and what is left of it once it is cancelled."""
    fill(broker.bootstrap, options.records)
    lines, figures = list[str](), dict[str, object]()
    with running_console(broker) as console:
        console.get("/topics")
        time.sleep(SETTLE_S)
        resident, _ = console.memory_mb()
        began = time.monotonic()
        with ExitStack() as stack:
            response = _stream(stack, console, f"{SEARCH}line+{NEEDLE}+")
            progress = sum(line.startswith(b"event: progress") for line in _until_done(response))
        took_s = time.monotonic() - began
        after, peak = console.memory_mb()
        lines.append(
            f"{options.records:,} records in {took_s:.0f} s, {options.records / took_s:,.0f} a second, "
            f"{progress} reports of progress; memory {resident:.0f} MB before, {after:.0f} after, {peak:.0f} at most"
        )
        with ExitStack() as stack:
            response = _stream(stack, console, f"{SEARCH}absent")
            for _ in range(20):
                response.readline()
        time.sleep(SETTLE_S)
        cpu_s = console.cpu_s()
        time.sleep(SETTLE_S)
        share = (console.cpu_s() - cpu_s) / SETTLE_S
        lines.append(f"cancelled: {share:.0%} of a core afterwards")
        figures |= {"records": options.records, "took_s": took_s, "progress": progress, "before_mb": resident}
        figures |= {"after_mb": after, "peak_mb": peak, "share_after_cancel": share}
    return Measured(lines, figures)


def fill(bootstrap: str, records: int) -> None:
    """Writes records of 100 bytes to a topic with four partitions."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic("lines", 4, 1)]).values():
        created.result(SOON_S)
    settings = {"compression.type": "lz4", "linger.ms": 50, "batch.size": 1_000_000, "queue.buffering.max.messages": 0}
    producer = Producer({"bootstrap.servers": bootstrap, **settings, "queue.buffering.max.kbytes": 1_000_000})
    for number in range(records):
        producer.produce("lines", f"line {number} ".ljust(100, "x"), partition=number % 4)
        if number % BATCH == BATCH - 1:
            producer.flush(SOON_S)
    producer.flush(SOON_S)


def _stream(stack: ExitStack, console: BenchConsole, path: str) -> HTTPResponse:
    connection, response = console.send(path)
    stack.callback(connection.close)
    stack.callback(response.close)
    return response


def _until_done(response: HTTPResponse) -> Iterator[bytes]:
    while line := response.readline():
        yield line
        if line == b"event: done\n":
            return
    raise SystemExit("the search did not end")


PARTS: Final[dict[str, Callable[[Odradek, argparse.Namespace], Measured]]] = {
    "pages": pages,
    "tails": tails,
    "search": search,
}


def main() -> int:
    """Measures, shows and saves."""
    parser = argparse.ArgumentParser(prog="bench.console", description="The cost of the console.")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS), help="default: all")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds of each kind of tails ({ROUNDS})")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"length of a round ({SECONDS:.0f})")
    parser.add_argument("--topics", type=int, default=TOPICS, help=f"of ten partitions each ({TOPICS})")
    parser.add_argument("--records", type=int, default=RECORDS, help=f"records that are searched ({RECORDS})")
    parser.add_argument("--pure", action="store_true", help="the source tree, without the compiled core")
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"folder of the JSON files ({RESULTS})")
    options = parser.parse_args()
    unwind_at_sigterm()
    folder = options.results / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name in options.parts:
        with tempfile.TemporaryDirectory(prefix="odradek-bench-") as work:
            broker = (PurePython if options.pure else Odradek)(Path(work))
            broker.prepare()
            try:
                broker.start()
                broker.wait_until_ready()
                load = os.getloadavg()[0]
                measured = PARTS[name](broker, options)
            finally:
                broker.stop()
        print(f"{name} (load {load:.1f} at the start)", *measured.lines, sep="\n  ", flush=True)
        saved = {"machine": machine(), "load": load, **measured.figures}
        (folder / f"{name}.json").write_text(json.dumps(saved, indent=1, default=dict) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
