"""The command line: `python -m bench [--loads …] [--peers …] [--rounds N]`. See docs/benchmarks.md."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from bench import report
from bench.load import Load
from bench.loads import LOADS, LONG, pick, smaller
from bench.peers import PEERS, USUAL
from bench.plots import draw
from bench.results import RESULTS, LoadResult, result_of, save
from bench.rounds import InterleavedRounds
from bench.trial import allow_many_files, unwind_at_sigterm

# The smoke test of the bench: each family of tools and each way of measuring, without the peer that needs Go.
SMOKE_DIVISOR = 500
SMOKE_LOADS = ("produce", "consume", "latency", "idle-connections", "start-up")
SMOKE_PEERS = ("odradek", "kafka", "floor")
SMOKE_RESULTS = RESULTS / "smoke"


def words(text: str) -> list[str]:
    """Splits names at commas or blanks."""
    return text.replace(",", " ").split()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="The same load on Odradek and on its peers.")
    parser.add_argument(
        "--loads", type=words, default=[], help=f"of: rows, goals, curves, {', '.join((*LOADS, *LONG))} (rows, curves)"
    )
    parser.add_argument("--peers", type=words, default=[], help=f"of: {', '.join(PEERS)} ({' '.join(USUAL)})")
    parser.add_argument("--rounds", type=int, default=3, help="counted rounds (3)")
    parser.add_argument("--results", type=Path, help=f"folder of the JSON files ({RESULTS})")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, one round: tests the benchmark itself")
    return parser.parse_args()


def measured(loads: Sequence[Load], peers: Sequence[str], rounds: int, *, warm_up: bool) -> Iterator[LoadResult]:
    """Yields each load's result as soon as it is complete, and then deletes the load's data."""
    console = Console(stderr=True)
    for load in loads:
        with tempfile.TemporaryDirectory(prefix="odradek-bench-") as work, console.status("") as status:
            chosen = [PEERS[name] for name in ([load.only] if load.only else peers)]
            began = time.monotonic()
            rows = InterleavedRounds(load, chosen, Path(work), status.update).run(rounds, warm_up=warm_up)
            yield result_of(load, rows, time.monotonic() - began)


def unmeasured(results: Sequence[LoadResult]) -> Iterator[str]:
    """Yields the figures that a load shows but a peer's rounds lack without a reason."""
    for result in results:
        for name, row in result.peers.items():
            if missing := row.lacks(result.figures):
                yield f"{result.load}: {name}: no {', '.join(missing)}"


def main() -> int:
    """Measures, shows, saves, draws. Returns exit status 1 if a peer failed that should have served."""
    options = arguments()
    allow_many_files()
    unwind_at_sigterm()
    try:
        loads = pick(options.loads or (SMOKE_LOADS if options.smoke else ()))
        peers = [PEERS[name].name for name in options.peers or (SMOKE_PEERS if options.smoke else USUAL)]
    except KeyError as error:
        print(f"bench: no load or peer is named {error}", file=sys.stderr)
        return 2
    folder = options.results or (SMOKE_RESULTS if options.smoke else RESULTS)
    if options.smoke:
        loads, options.rounds = [smaller(load, SMOKE_DIVISOR) for load in loads], 1
    console, results = report.console(), []
    for result in measured(loads, peers, options.rounds, warm_up=not options.smoke):
        results.append(result)
        save(folder, result)
        report.show(console, result)
        console.print(f"  {result.load} took {result.took_s:.0f} s\n", style="dim", highlight=False)
    if not options.smoke:
        report.show_goals(console, results)
    faults = list(unmeasured(results))
    for line in (*faults, *map(str, draw(folder))):
        print(line)
    return int(bool(faults) or report.any_failed(results))


if __name__ == "__main__":
    sys.exit(main())
