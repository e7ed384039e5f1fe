"""The cost of a scrape of ten thousand partitions: its duration, and its effect on producers.

    python -m bench.scrapes [--rounds N] [--seconds S] [--each S] [--topics N] [--results FOLDER]

One broker is scraped in every other round, so that other work of the machine affects both kinds of rounds. A record is
sent every few milliseconds, and timed until it is acknowledged.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bench.clients.scraper import BEGINS
from bench.figures import Sample, percentiles_ms
from bench.load import module
from bench.metrics import FOLDER
from bench.peers.brokers import MeteredOdradek
from bench.results import RESULTS, machine
from bench.trial import unwind_at_sigterm

TOPICS: Final = 1_000
PARTITIONS: Final = 10
AT_ONCE: Final = 100
ROUNDS: Final = 5
SECONDS: Final = 30.0
EACH_S: Final = 15.0
"""The usual interval between two scrapes."""
RECORD_EACH_S: Final = 0.005
RECORD_BYTES: Final = 100
SOON_S: Final = 60.0

SCRAPE_S: Final = 0.3
"""Goal: the longest duration of a scrape."""
LIMIT: Final = 1.1
"""Goal: the largest ratio of p99 with scrapes to p99 without."""


class Felt(NamedTuple):
    """The rounds without scrapes, the rounds with scrapes, and the seconds of each scrape."""

    without: list[Sample]
    scraped: list[Sample]
    scrapes_s: list[float]

    def ratio(self, figure: str) -> float:
        """Returns the median over the rounds of a figure with scrapes ÷ without."""
        return median(
            with_scrapes[figure] / other[figure] for other, with_scrapes in zip(self.without, self.scraped, strict=True)
        )

    @property
    def is_within(self) -> bool:
        return median(self.scrapes_s) <= SCRAPE_S and self.ratio("p99_ms") <= LIMIT

    def __str__(self) -> str:
        lines = [f"{median(self.scrapes_s) * 1000:.0f} ms a scrape ({max(self.scrapes_s) * 1000:.0f} at most)"]
        for title, samples in (("without scrapes", self.without), ("with scrapes", self.scraped)):
            of = {key: median(sample[key] for sample in samples) for key in ("p50_ms", "p99_ms", "p999_ms")}
            lines.append(f"{title}: " + ", ".join(f"{key[:-3]} {value:.2f} ms" for key, value in of.items()))
        lines.append(
            f"p99 ×{self.ratio('p99_ms'):.2f}, p99.9 ×{self.ratio('p999_ms'):.2f}, by {len(self.scraped)} pairs"
        )
        return "\n".join(lines)


def create_topics(bootstrap: str, count: int, partitions: int = PARTITIONS) -> None:
    """Creates topic-0, topic-1 and so on."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    for first in range(0, count, AT_ONCE):
        topics = [NewTopic(f"topic-{number}", partitions, 1) for number in range(first, min(first + AT_ONCE, count))]
        for created in admin.create_topics(topics, operation_timeout=SOON_S).values():
            created.result(SOON_S)


def probe(bootstrap: str, seconds: float) -> Sample:
    """Returns the times from produce to acknowledgement of records that are sent one after the other."""
    from confluent_kafka import KafkaError, KafkaException, Message, Producer

    took_ns: list[int] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        took_ns.append(round((message.latency() or 0.0) * 1e9))

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": 1, "socket.nagle.disable": True})
    producer.produce("topic-0", bytes(RECORD_BYTES))
    producer.flush(SOON_S)  # the client is connected now
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        producer.produce("topic-0", bytes(RECORD_BYTES), on_delivery=delivered)
        producer.flush(SOON_S)
        time.sleep(RECORD_EACH_S)
    return percentiles_ms(took_ns)


@contextmanager
def scraped(address: str, each_s: float, seconds: float) -> Iterator[list[float]]:
    """Scrapes in another process during the block. After its end, the list has the seconds of each scrape."""
    took_s: list[float] = []
    command = module("bench.clients.scraper", address, str(each_s), str(seconds))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as scraper:
        assert scraper.stdout is not None
        assert scraper.stdout.readline().strip() == BEGINS
        yield took_s
        took_s += json.loads(scraper.stdout.read())


def measured(broker: MeteredOdradek, rounds: int, seconds: float, each_s: float) -> Felt:
    """Measures pairs of rounds, after a pair that warms the broker up."""
    felt = Felt([], [], [])
    for number in range(rounds + 1):
        without = probe(broker.bootstrap, seconds)
        with scraped(broker.metrics, each_s, seconds) as took_s:
            with_scrapes = probe(broker.bootstrap, seconds)
        if number:
            felt.without.append(without)
            felt.scraped.append(with_scrapes)
            felt.scrapes_s.extend(took_s)
    return felt


def main() -> int:
    """Measures, shows and saves. Returns exit status 1 if a scrape takes too long, or affects producers too much."""
    parser = argparse.ArgumentParser(prog="bench.scrapes", description="The cost of a scrape.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"pairs of rounds ({ROUNDS})")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"length of a round ({SECONDS:.0f})")
    parser.add_argument("--each", type=float, default=EACH_S, help=f"seconds from scrape to scrape ({EACH_S:.0f})")
    parser.add_argument("--topics", type=int, default=TOPICS, help=f"of {PARTITIONS} partitions each ({TOPICS})")
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"folder of the JSON file ({RESULTS})")
    options = parser.parse_args()
    unwind_at_sigterm()
    with tempfile.TemporaryDirectory(prefix="odradek-bench-") as work:
        broker = MeteredOdradek(Path(work))
        broker.prepare()
        try:
            broker.start()
            broker.wait_until_ready()
            create_topics(broker.bootstrap, options.topics)
            felt = measured(broker, options.rounds, options.seconds, options.each)
        finally:
            broker.stop()
    print(felt)
    folder = options.results / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scrapes.json").write_text(json.dumps({"machine": machine(), **felt._asdict()}, indent=1) + "\n")
    return int(not felt.is_within)


if __name__ == "__main__":
    sys.exit(main())
