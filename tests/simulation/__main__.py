"""Runs simulations over a range of seeds: `python -m tests.simulation 1000-1999 [WORLD …]`, or `make simulate`.

A world is a test module whose tests take only a seed. The default world is `log`; `all` runs every world. For each seed
that fails, prints the reason and the command that replays it; meanwhile a bar, or without a terminal a line of counts
each minute; then a line of counts. The exit code is 1 if a seed failed, 2 for invalid arguments. New planted faults and
invariants need no change here.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import io
import logging
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from types import FunctionType, ModuleType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PATTERNS = ("simulation/test_*.py", "**/test_*simulation.py")
CHUNK = 20
"""Number of seeds that a process runs at a time."""

PROGRESS_S = 60.0
"""Pause between two lines of counts in a file, so that a run that is ended early still has counted its seeds."""

Run = Callable[[int], None]


class Nowhere(io.TextIOBase):
    """A stream that discards what is written to it."""

    def write(self, text: str) -> int:
        return len(text)


class Failure(NamedTuple):
    """A seed at which a world failed, and the reason."""

    world: str
    seed: int
    reason: str


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seeds", help="one seed, or a range of them: 17, 1000-1999")
    parser.add_argument("worlds", nargs="*", help=f"of {', '.join(worlds())}; or all", default=["log"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    options = parser.parse_args(arguments)
    try:
        seeds = parse_seeds(options.seeds)
        chosen = choose(options.worlds)
    except ValueError as error:
        parser.error(str(error))
    pieces = [(world, seeds[at : at + CHUNK]) for world in chosen for at in range(0, len(seeds), CHUNK)]
    progress = Progress(len(seeds) * len(chosen))
    for failed, piece in zip(run_all(pieces, options.jobs), pieces, strict=True):
        for failure in failed:
            progress.clear()
            report(failure)
        progress.add(piece, len(failed))
    print(progress.counts(", ".join(chosen)))
    return 1 if progress.failed else 0


def parse_seeds(text: str) -> range:
    first, dash, last = text.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        raise ValueError(f"seeds {text!r}: a number or two with a dash between them are wanted, such as 1000-1999")
    seeds = range(int(first), int(last if dash else first) + 1)
    if not seeds:
        raise ValueError(f"seeds {text!r}: the range is empty")
    return seeds


def worlds() -> dict[str, str]:
    """Returns module names by the name of the world."""
    files = {file for pattern in PATTERNS for file in ROOT.glob(pattern)}
    names = {world_name(file): module_name(file) for file in sorted(files)}
    return {name: module for name, module in names.items() if 'parametrize("seed"' in source(module)}


def world_name(file: Path) -> str:
    """Returns the name of a module's world: its file name without affixes, or the name of its folder."""
    about = file.stem.removeprefix("test_")
    return file.parent.name if about == "simulation" else about.removesuffix("_simulation")


def module_name(file: Path) -> str:
    return ".".join(("tests", *file.relative_to(ROOT).with_suffix("").parts))


def source(module: str) -> str:
    return ROOT.joinpath(*module.split(".")[1:]).with_suffix(".py").read_text()


def choose(names: Iterable[str]) -> list[str]:
    available = worlds()
    chosen = list(available) if "all" in names else list(names)
    for name in chosen:
        if name not in available:
            raise ValueError(f"world {name!r}: there are {', '.join(available)}")
    return chosen


def run_all(pieces: list[tuple[str, range]], jobs: int) -> Iterator[list[Failure]]:
    if jobs < 2 or len(pieces) < 2:
        yield from map(run_piece, pieces)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run_piece, pieces)


def run_piece(piece: tuple[str, range]) -> list[Failure]:
    """Returns the failures among a piece's seeds."""
    world, seeds = piece
    runs = list(seeded(importlib.import_module(worlds()[world])))
    with quiet():
        failures = [Failure(world, seed, reason) for seed in seeds for run in runs if (reason := attempt(run, seed))]
    gc.unfreeze()  # brokers freeze what is there when they start, the remains of the ones before them too
    gc.collect()
    return failures


@contextmanager
def quiet() -> Iterator[None]:
    """Suppresses the lines of brokers that are killed, and the errors of their unfinished work."""
    logging.disable(logging.CRITICAL)
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
    with redirect_stderr(Nowhere()):
        yield
    logging.disable(logging.NOTSET)


def seeded(module: ModuleType) -> Iterator[Run]:
    """Yields the tests of a module that take only a seed."""
    for name, value in vars(module).items():
        if name.startswith("test_") and isinstance(value, FunctionType):
            code = value.__code__
            if code.co_varnames[: code.co_argcount] == ("seed",):
                yield value


def attempt(run: Run, seed: int) -> str:
    """Returns the reason why the seed failed; None if it passed."""
    try:
        run(seed)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        text = str(error).splitlines() or [""]
        return f"{type(error).__name__}: {text[0]} ({Path(last.filename).name}:{last.lineno})"
    return ""


def report(failure: Failure) -> None:
    print(f"{failure.world} seed {failure.seed} failed: {failure.reason}")
    print(f"    make simulate SEEDS={failure.seed} WORLDS={failure.world}", flush=True)


class Progress:
    """The counts of runs: a bar on a terminal, otherwise a line each PROGRESS_S."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self.failed = 0
        self._began_s = self._shown_s = time.monotonic()

    def add(self, piece: tuple[str, range], failed: int) -> None:
        """Counts the runs of a piece."""
        world, seeds = piece
        self._done += len(seeds)
        self.failed += failed
        if sys.stderr.isatty():
            self._draw()
        elif time.monotonic() - self._shown_s >= PROGRESS_S:
            self._shown_s = time.monotonic()
            print(f"up to {world} seed {seeds[-1]}: {self.counts(f'{self._total}')}", file=sys.stderr, flush=True)

    def counts(self, of: str) -> str:
        took_s = time.monotonic() - self._began_s
        return f"{self._done} runs of {of} in {took_s:.0f} s: {self._done - self.failed} passed, {self.failed} failed"

    def _draw(self) -> None:
        width = 40 * self._done // self._total
        sys.stderr.write(f"\r[{'#' * width}{'.' * (40 - width)}] {self._done}/{self._total}")
        sys.stderr.flush()
        if self._done == self._total:
            self.clear()

    def clear(self) -> None:
        """Removes the bar."""
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")


if __name__ == "__main__":
    sys.exit(main())
