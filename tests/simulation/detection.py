"""Detects whether a simulation finds a planted fault."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def finding(run: Callable[[int], object], seeds: Iterable[int]) -> str:
    """Returns the first assertion that fails in a run of one of the seeds; None if all runs pass."""
    for seed in seeds:
        try:
            run(seed)
        except AssertionError as error:
            return str(error) or "an assertion without a text"
    return ""
