"""Tests a whole broker with broken frames: it survives, reveals nothing, and loses nothing of another client."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import corpus
from tests.fuzz.running import Run

FRAMES = 10_000


@pytest.mark.odradek_only
@pytest.mark.parametrize("seed", [1])
def test_broken_frames_cost_nobody_but_their_senders(seed: int, tmp_path: Path) -> None:
    outcome = Run(seed, FRAMES, tmp_path, corpus.load())()
    print(outcome.line())
    assert not outcome.problems, "\n".join([outcome.line(), *outcome.problems])
    assert outcome.frames >= FRAMES
