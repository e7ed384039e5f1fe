"""Results as files: one JSON per load, so that a load can be measured again without the others."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bench import warmth, wheel
from bench.figures import Sample, Spread, cpu_figure, summarise
from bench.load import Load, Method

RESULTS = Path(__file__).parent / "results" / "local"
"""The default folder of results. They belong to one machine and one moment, and are not committed."""


NO_LOAD = "saturation.json"
"""The only result that doesn't belong to a load (bench/saturation.py)."""


class PeerResult(NamedTuple):
    """The rounds of a peer under a load, or the reason why there are none."""

    title: str
    samples: list[Sample]
    reason: str | None = None
    failed: bool = False
    """True if the reason is a failure; False if the peer doesn't offer what the load needs."""
    warm_up: tuple[Sample, ...] = ()
    """The warm-up rounds, from the start of the process on."""

    def lacks(self, figures: tuple[str, ...]) -> list[str]:
        """Returns the figures that a round lacks, if the row has no reason for it."""
        return [key for key in figures if not self.reason and not all(key in sample for sample in self.samples)]

    def summary(self) -> dict[str, Spread]:
        return summarise(self.samples)

    def cold(self) -> dict[str, Spread]:
        """Returns the first round after the start; empty without a warm-up."""
        return summarise(self.warm_up[:1])

    def is_settled(self, figures: tuple[str, ...]) -> bool:
        """True if the cost had stopped falling when the rounds that count began."""
        key = cpu_figure(figures)
        return key is not None and warmth.is_settled([sample[key] for sample in self.warm_up if key in sample])


class LoadResult(NamedTuple):
    """A load on its peers, with the machine and the time of the measurement."""

    load: str
    title: str
    tool: str
    records: int
    record_bytes: int
    figures: tuple[str, ...]
    when: str
    machine: str
    peers: Mapping[str, PeerResult]
    took_s: float = 0.0
    """The time of all rounds, including the warm-up."""


def machine() -> str:
    """Returns the processor, its cores, the kernel and the brokers' interpreter, in one line."""
    model = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    processor = model[1] if model else platform.machine()
    return f"{processor}, {os.cpu_count()} cores, Linux {platform.release()}, Python {wheel.python_version()}"


def result_of(load: Load, peers: Mapping[str, PeerResult], took_s: float) -> LoadResult:
    return LoadResult(
        load=load.name,
        title=load.title,
        tool=load.tool.name if load.method is Method.TOOL else load.method.value,
        records=load.records,
        record_bytes=load.record_bytes,
        figures=load.figures,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=machine(),
        peers=peers,
        took_s=round(took_s, 1),
    )


def to_json(result: LoadResult) -> str:
    """Returns the rounds, and their summary for readers."""
    peers = {
        name: row._asdict()
        | {"settled": row.is_settled(result.figures)}
        | {"summary": {key: spread._asdict() for key, spread in row.summary().items()}}
        for name, row in result.peers.items()
    }
    return json.dumps(result._asdict() | {"peers": peers}, indent=1) + "\n"


def from_json(text: str) -> LoadResult:
    fields = json.loads(text)
    peers = {
        name: PeerResult(row["title"], row["samples"], row["reason"], row["failed"], tuple(row.get("warm_up", ())))
        for name, row in fields["peers"].items()
    }
    return LoadResult(**{**fields, "figures": tuple(fields["figures"]), "peers": peers})


def save(folder: Path, result: LoadResult) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{result.load}.json").write_text(to_json(result))


def saved(folder: Path) -> Iterator[LoadResult]:
    for file in sorted(folder.glob("*.json")):
        if file.name != NO_LOAD:
            yield from_json(file.read_text())
