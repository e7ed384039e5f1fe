"""Finds the smallest number of connections of a seed that still fail: first the suspected ones, then by halves."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.fuzz.corpus import Corpus
from tests.fuzz.running import Outcome, Run


def shrink(outcome: Outcome, frames: int, folder: Path, corpus: Corpus) -> list[int]:
    """Returns the remaining visits; none if the failure can't be repeated."""

    def fails(visits: Sequence[int]) -> bool:
        here = Path(tempfile.mkdtemp(dir=folder))
        return bool(Run(outcome.seed, frames, here, corpus, only=visits, beside=False)().problems)

    suspects = sorted(set(outcome.suspects))
    visits = fewest(suspects, fails) if suspects and fails(suspects) else []
    if visits:
        print(f"    make fuzz SEEDS={outcome.seed} VISITS={','.join(map(str, visits))}", flush=True)
    else:
        print("    it does not come again by the connections that are suspected: it needs what came before them")
    return visits


def fewest(items: Sequence[int], fails: Callable[[Sequence[int]], bool]) -> list[int]:
    """Returns a minimal failing part of the items, none of which can be left out (delta debugging, Zeller 1999)."""
    left, pieces = list(items), 2
    while len(left) >= 2:
        size = -(-len(left) // pieces)
        for start in range(0, len(left), size):
            rest = left[:start] + left[start + size :]
            if rest and fails(rest):
                left, pieces = rest, max(2, pieces - 1)
                break
        else:
            if size == 1:
                break
            pieces = min(len(left), pieces * 2)
    return left
