"""A storm of connections from one address, and its effect on a producer, compared with Apache Kafka.

    python -m bench.storms [--peers odradek kafka] [--kinds KIND …] [--rounds N] [--seconds S] [--results FOLDER]

A record is sent every few milliseconds and timed until it is acknowledged, alternately with and without a storm. The
storm is a process on the same machine. So one kind opens no connections and only keeps the cores busy: its effect is
the machine's, not the broker's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table

from bench.clients.storm import BEGINS, KINDS
from bench.figures import Sample
from bench.load import module
from bench.peers import PEERS
from bench.peers.peer import PeerProcess
from bench.results import RESULTS, machine
from bench.scrapes import create_topics, probe
from bench.trial import unwind_at_sigterm

ROUNDS: Final = 5
SECONDS: Final = 10.0
WARM_S: Final = 30.0
"""Time for which a broker gets load before anything counts."""
SETTLE_S: Final = 1.0
FOLDER: Final = "storms"
"""The subfolder of results; their format differs from that of loads."""
PEERS_SHOWN: Final = ("odradek", "kafka")


class Storm(NamedTuple):
    """The rounds of a kind of storm at a broker: calm rounds, rounds in the storm, and connections per second."""

    calm: list[Sample]
    stormy: list[Sample]
    connections_per_s: list[float]

    @property
    def ratio(self) -> float:
        """The median over the rounds of p99 in the storm ÷ p99 of the calm round next to it."""
        return median(stormy["p99_ms"] / other["p99_ms"] for other, stormy in zip(self.calm, self.stormy, strict=True))

    def p99_ms(self, samples: list[Sample]) -> str:
        """Returns the median of p99, with its minimum and maximum."""
        values = [sample["p99_ms"] for sample in samples]
        return f"{median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


@contextmanager
def storming(kind: str, address: str, seconds: float) -> Iterator[list[float]]:
    """Runs a storm in another process during the block. After its end, the list has the connections per second."""
    made: list[float] = []
    command = module("bench.clients.storm", kind, address, str(seconds))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as storm:
        assert storm.stdout is not None
        assert storm.stdout.readline().strip() == BEGINS
        yield made
        made.append(float(storm.stdout.read()))


def measured(peer: PeerProcess, kind: str, rounds: int, seconds: float) -> Storm:
    """Measures calm and storm in turn; every other round begins with the other of them."""
    storm = Storm([], [], [])
    for number in range(rounds):
        for is_calm in (True, False) if number % 2 == 0 else (False, True):
            time.sleep(SETTLE_S)
            if is_calm:
                storm.calm.append(probe(peer.bootstrap, seconds))
                continue
            with storming(kind, peer.bootstrap, seconds + SETTLE_S) as made:
                storm.stormy.append(probe(peer.bootstrap, seconds))
            storm.connections_per_s.extend(made)
    return storm


def at(peer: PeerProcess, kinds: Sequence[str], rounds: int, seconds: float, warm_s: float) -> dict[str, Storm]:
    """Returns the storms of these kinds at a broker."""
    try:
        peer.start()
        peer.wait_until_ready()
        create_topics(peer.bootstrap, 1, 1)
        probe(peer.bootstrap, warm_s)
        return {kind: measured(peer, kind, rounds, seconds) for kind in kinds}
    finally:
        peer.stop()


def table(storms: Mapping[str, Mapping[str, Storm]]) -> Table:
    """Returns the table of storms, by broker and kind."""
    columns = ("broker", "storm", "connections /s", "p99 calm, ms", "p99 in the storm, ms", "ratio")
    shown = Table(*columns, title="a producer beside a storm of connections")
    for peer, kinds in storms.items():
        for kind, storm in kinds.items():
            count = f"{median(storm.connections_per_s):,.0f}"
            shown.add_row(
                peer, kind, count, storm.p99_ms(storm.calm), storm.p99_ms(storm.stormy), f"×{storm.ratio:.2f}"
            )
    return shown


def main() -> None:
    """Measures, shows and saves."""
    parser = argparse.ArgumentParser(
        prog="bench.storms", description="The effect of a storm of connections on a producer."
    )
    parser.add_argument("--peers", nargs="+", choices=[*PEERS], default=[*PEERS_SHOWN], help="brokers (odradek kafka)")
    parser.add_argument("--kinds", nargs="+", choices=[*KINDS], default=[*KINDS], help="storms (all)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"pairs of a calm and a stormy round ({ROUNDS})")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"length of a round ({SECONDS:.0f})")
    parser.add_argument("--warm", type=float, default=WARM_S, help=f"seconds before anything counts ({WARM_S:.0f})")
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"folder of the JSON file ({RESULTS})")
    options = parser.parse_args()
    unwind_at_sigterm()
    storms: dict[str, dict[str, Storm]] = {}
    for name in options.peers:
        with tempfile.TemporaryDirectory(prefix="odradek-bench-") as work:
            peer = PEERS[name](Path(work))
            peer.prepare()
            storms[name] = at(peer, options.kinds, options.rounds, options.seconds, options.warm)
    Console().print(table(storms))
    folder = options.results / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    saved = {name: {kind: storm._asdict() for kind, storm in kinds.items()} for name, kinds in storms.items()}
    (folder / "storms.json").write_text(json.dumps({"machine": machine(), "storms": saved}, indent=1) + "\n")


if __name__ == "__main__":
    main()
