"""Memory of a broker that every kind of client uses in turn, a day of small clients in minutes.

    python -m bench.age [--minutes N] [--results FOLDER]

Each cycle runs the loads of CLIENTS, one after the other, with new topics, groups and transactional ids. What a broker
keeps of such clients for a day or a week expires after a minute here, so that it must get rid of it as often as in
production. The last tenth of the cycles is compared with the first tenth after the warm-up.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from rich.console import Console
from rich.table import Table

from bench.figures import Sample
from bench.goals import ageing
from bench.loads import LOADS, smaller
from bench.peers.brokers import Odradek
from bench.results import RESULTS, machine
from bench.trial import Trial, allow_many_files, unwind_at_sigterm

MINUTES: Final = 15.0
DIVISOR: Final = 20
"""The loads have a twentieth of their usual size."""
WARM_UP: Final = 3
"""Number of cycles that are not compared. They take about a minute, after which the first state has expired."""
ROWS: Final = 10
"""Number of rows of the table; each is the median of its part of the cycles."""
FOLDER: Final = "age"
"""The subfolder of results; their format differs from that of loads."""

CLIENTS: Final = (
    "produce",
    "produce-idempotent",
    "produce-lz4",
    "produce-librdkafka",
    "produce-unbatched",
    "produce-many",
    "consume",
    "consume-lz4",
    "consume-group",
    "consume-fan-out",
    "consume-share-4",
    "latency",
    "group-join",
    "group-join-consumer",
    "offset-commits",
    "group-commits",
    "group-heartbeats",
    "group-many",
    "transactions-10ms",
    "transactions-10",
    "transactions-consume",
    "streams-word-count",
    "idle-connections",
)
"""Names of loads: clients in Java, of librdkafka and with bare sockets."""


class ForgetfulOdradek(Odradek):
    """Odradek that forgets groups, producers and transactional ids a minute after their last use."""

    SETTINGS: Final = {
        "offsets.retention.minutes": "1",
        "offsets.retention.check.interval.ms": "5000",
        "producer.id.expiration.ms": "60000",
        "transactional.id.expiration.ms": "60000",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "5000",
    }

    def command(self) -> list[str]:
        return [*super().command(), *(word for pair in self.SETTINGS.items() for word in ("--set", "=".join(pair)))]


def cycles(work: Path, minutes: float) -> Iterator[Sample]:
    """Yields the memory after each cycle, and the cycle's time. Raises Unavailable, ToolFailed."""
    peer = ForgetfulOdradek(work)
    trials = [Trial(peer, smaller(LOADS[name], DIVISOR), work) for name in CLIENTS]
    try:
        trials[0].open()
        ends = time.monotonic() + minutes * 60
        number = 0
        while time.monotonic() < ends:
            began = time.monotonic()
            for trial in trials:
                trial.measure(number)
            yield trials[0].memory() | {"cycle_s": time.monotonic() - began}
            number += 1
    finally:
        peer.stop()


def parts(samples: Sequence[Sample], count: int) -> Iterator[Sequence[Sample]]:
    """Yields the samples in at most `count` parts of nearly the same size."""
    count = min(count, len(samples))
    for place in range(count):
        yield samples[place * len(samples) // count : (place + 1) * len(samples) // count]


def growth(samples: Sequence[Sample]) -> float | None:
    """Returns the memory of the last tenth ÷ that of the first tenth after the warm-up; None with too few cycles."""
    warm = list(samples[WARM_UP:])
    return ageing(warm, "private_mb") if len(warm) > 1 else None


def table(samples: Sequence[Sample]) -> Table:
    """Returns a table of the memory over the cycles."""
    shown = Table(title="Odradek under every kind of client in turn")
    for heading in ("cycles", "memory without mapped files, MB", "memory peak, MB", "time of a cycle, s"):
        shown.add_column(heading, justify="right")
    done = 0
    for part in parts(samples, ROWS):
        figures = (f"{median(sample[key] for sample in part):.1f}" for key in ("private_mb", "rss_peak_mb", "cycle_s"))
        shown.add_row(f"{done + 1}–{done + len(part)}", *figures)
        done += len(part)
    return shown


def main() -> None:
    """Measures, shows and saves."""
    parser = argparse.ArgumentParser(prog="bench.age", description="Memory of a broker under every kind of client.")
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"time to run ({MINUTES:.0f})")
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"folder of the JSON file ({RESULTS})")
    options = parser.parse_args()
    allow_many_files()
    unwind_at_sigterm()
    console, samples = Console(), list[Sample]()
    with tempfile.TemporaryDirectory(prefix="odradek-bench-") as work, console.status("") as status:
        for sample in cycles(Path(work), options.minutes):
            samples.append(sample)
            status.update(f"cycle {len(samples)}: {sample['private_mb']:.1f} MB")
    console.print(table(samples))
    ratio = growth(samples)
    console.print("too few cycles for a ratio" if ratio is None else f"last tenth ÷ first tenth: {ratio:.3f}")
    folder = options.results / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    saved = {"machine": machine(), "clients": CLIENTS, "cycles": samples}
    (folder / "age.json").write_text(json.dumps(saved, indent=1) + "\n")


if __name__ == "__main__":
    main()
