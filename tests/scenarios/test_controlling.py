"""Tests that each transcript in `brokers` matches the present effects."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.controlling import play

TRANSCRIPTS = sorted((Path(__file__).parent / "brokers").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_scenario(path: Path, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    written = path.read_text()
    played = play(written, tmp_path)
    if pytestconfig.getoption("rewrite", default=False):
        path.write_text(played)
    else:
        assert played == written
