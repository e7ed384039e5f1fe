"""Fuzzes a whole broker: `python -m tests.fuzz 0-9 --frames 100000`, or `make fuzz SEEDS=0-9 FRAMES=100000`.

A seed is a separate run: a broker, a world, a well-behaved client, and this number of frames. For a seed that fails,
prints the reasons, the last frames of the suspected connections, and the command that replays it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

from tests.fuzz import corpus
from tests.fuzz.coverage import Coverage
from tests.fuzz.running import Outcome, Run
from tests.fuzz.shrinking import shrink
from tests.simulation.__main__ import parse_seeds

HELD: Final = (sys.executable, "-m", "tests.fuzz.held")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("seeds", nargs="?", default="0", help="one seed, or a range of them: 17, 0-9")
    parser.add_argument("--frames", type=int, default=100_000, help="for each seed")
    parser.add_argument("--visits", default="", help="replay only these connections of the seed: 12,17-19")
    parser.add_argument("--shrink", action="store_true", help="look for the fewest connections that fail")
    parser.add_argument("--coverage", action="store_true", help="report the branches of the handlers that were taken")
    parser.add_argument("--keep-going", action="store_true", help="go on behind a problem")
    parser.add_argument("--alone", action="store_true", help="without the client beside")
    parser.add_argument("--rate", type=float, default=0, help="frames a second, and first as many that behave; 0: all")
    parser.add_argument("--held", action="store_true", help="a callback that holds the loop for 100 ms is a problem")
    parser.add_argument("--large", action="store_true", help="frames of 20,000 to 200,000 entries, a few at a time")
    parser.add_argument("--without-rights", action="store_true", help="the frames' client may do nothing")
    options = parser.parse_args()
    frames = corpus.load()
    only = [number for part in options.visits.split(",") if part for number in parse_seeds(part)]
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder:
        coverage = Coverage(Path(folder)) if options.coverage else None
        for seed in parse_seeds(options.seeds):
            here = Path(folder, str(seed))
            here.mkdir()
            command = coverage.command() if coverage else HELD if options.held else ()
            run = Run(
                seed, options.frames, here, frames,
                only=only, beside=not options.alone, command=command, goes_on=options.keep_going,
                rate=options.rate, are_large=options.large, has_rights=not options.without_rights,
            )  # fmt: skip
            outcomes.append(run())
            report(outcomes[-1])
            if outcomes[-1].problems and options.shrink:
                shrink(outcomes[-1], options.frames, Path(folder), frames)
        if coverage:
            print(coverage.report())
    return summary(outcomes)


def report(outcome: Outcome) -> None:
    print(outcome.line(), flush=True)
    for problem in outcome.problems:
        print(f"  {problem}")
    if outcome.problems:
        suspects = ",".join(map(str, sorted(set(outcome.suspects))[-20:]))
        print(f"    make fuzz SEEDS={outcome.seed}" + (f" VISITS={suspects}" if suspects else ""), flush=True)


def summary(outcomes: list[Outcome]) -> int:
    failed = sum(bool(outcome.problems) for outcome in outcomes)
    sent = sum((outcome.sent for outcome in outcomes), Counter[tuple[int, int]]())
    frames = corpus.load()
    served = {place for place in sent if place in frames}
    print(
        f"{len(outcomes)} runs: {sum(outcome.frames for outcome in outcomes)} frames, "
        f"{sum(outcome.answers for outcome in outcomes)} answers, {len(served)} APIs × versions, "
        f"{len(outcomes) - failed} passed, {failed} failed"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
