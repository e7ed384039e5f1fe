"""The throughput at which Odradek saturates: one broker on a core of its own, and several brokers as a cluster on this
machine.

    python -m bench.saturation [RESULTS]

The clients (bench/clients/flood.py) have the other cores. The figure is bytes through the brokers ÷ the processor time
of their processes, including the controller and the supervisor, because on two cores clients and brokers compete.
docs/benchmarks.md has the calculation for a larger machine (bench/page.py).
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from bench import cost, wheel
from bench.figures import GB, MB
from bench.load import module
from bench.peers.brokers import ONE_NODE, Odradek
from bench.results import NO_LOAD, RESULTS, machine
from bench.trial import run

TOPIC: Final = "flood"
PARTITIONS: Final = 4
"""Number of connections, and so of concurrent requests, enough to keep every broker busy."""
BROKERS: Final = (1, 2, 3)
WARM_S, FILL_S, MEASURE_S = 3, 6, 10
BROKERS_CORE: Final = 0
SETTINGS: Final = {
    "log.segment.bytes": "134217728",
    "log.retention.bytes": "536870912",  # of each partition, because a flood is larger than memory
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "1000",
}


class Saturation(NamedTuple):
    """The work of a number of brokers, and its cost."""

    flow: str
    brokers: int
    mb_per_s: float
    busy_cores: float
    gb_per_core_s: float
    """Gigabytes per second of processor time."""


class Brokers(Odradek):
    """One broker; or several with their controller, as `odradek cluster` starts them."""

    def __init__(self, work: Path, count: int) -> None:
        super().__init__(work)
        self._count = count

    def command(self) -> list[str]:
        settings = [word for pair in {**ONE_NODE, **SETTINGS}.items() for word in ("--set", "=".join(pair))]
        if self._count == 1:
            return [self.program, "run", "--listen", self.bootstrap, "--data", str(self.data), *settings]
        shape = ("--brokers", str(self._count), "--listen", "127.0.0.1:0", "--data", str(self.data))
        return [self.program, "cluster", *shape, *settings]

    def wait_until_ready(self, timeout_s: float = 60.0) -> None:
        super().wait_until_ready(timeout_s)
        if self._count > 1:
            ready = re.search(r"^ready (\S+?),", self.log.read_text(), re.MULTILINE)
            assert ready is not None, self.tail()
            self.bootstrap = ready[1]


def flood(brokers: Brokers, flow: str, seconds: float) -> float:
    """Returns the bytes per second that went through the brokers."""
    out = json.loads(run(module("bench.clients.flood", brokers.bootstrap, TOPIC, flow, str(seconds))))
    return float(out["size_bytes"] / out["seconds"])


def measured(brokers: Brokers, count: int, flow: str) -> Saturation:
    flood(brokers, flow, WARM_S)
    before, began = cost.spent(brokers.pid), time.monotonic()
    rate = flood(brokers, flow, MEASURE_S)
    seconds, spent_s = time.monotonic() - began, cost.between(before, cost.spent(brokers.pid)).total_s
    return Saturation(flow, count, rate / MB, spent_s / seconds, rate * MEASURE_S / GB / spent_s)


def of_one_size(count: int) -> Iterator[Saturation]:
    """Yields the results of one broker on a core of its own, or of a cluster of several."""
    cores = os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory(prefix="odradek-saturation-") as work:
        brokers = Brokers(Path(work), count)
        brokers.prepare()
        try:
            brokers.start()
            brokers.wait_until_ready()
            if count == 1 and len(cores) > 1:
                os.sched_setaffinity(brokers.pid, {BROKERS_CORE})
                os.sched_setaffinity(0, cores - {BROKERS_CORE})
            brokers.create_topic(TOPIC, PARTITIONS * count, {})
            yield measured(brokers, count, "produce")
            flood(brokers, "produce", FILL_S)
            yield measured(brokers, count, "consume")
        finally:
            os.sched_setaffinity(0, cores)
            brokers.stop()


def saved(folder: Path) -> list[Saturation]:
    """Returns the rows that were measured last; empty if there are none."""
    file = folder / NO_LOAD
    return [Saturation(**row) for row in json.loads(file.read_text())["rows"]] if file.exists() else []


def main(folder: Path) -> None:
    wheel.program()
    rows = []
    for count in BROKERS:
        for row in of_one_size(count):
            rows.append(row)
            print(
                f"{row.flow}, brokers: {row.brokers}: {row.mb_per_s:.0f} MB/s, {row.busy_cores:.2f} cores busy, "
                f"{row.gb_per_core_s:.2f} GB for a second of a core"
            )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NO_LOAD).write_text(json.dumps({"machine": machine(), "rows": [row._asdict() for row in rows]}, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS)
