"""Tests that a plot that is drawn again is the same file: an unchanged result changes no file of the repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.interop.processes import ROOT


def test_a_plot_that_is_drawn_again_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "start-up.json").write_bytes((ROOT / "bench" / "results" / "start-up.json").read_bytes())
    drawn = []
    for _ in range(2):
        subprocess.run([sys.executable, "-m", "bench.plots", str(tmp_path)], check=True, stdout=subprocess.DEVNULL)
        drawn.append((tmp_path / "start-up.svg").read_bytes())
    assert drawn[0] == drawn[1]
