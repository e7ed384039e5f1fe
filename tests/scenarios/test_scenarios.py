"""Tests that each transcript in this folder matches the present effects."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.commands import COMMANDS
from tests.scenarios.consumer_commands import CONSUMER_COMMANDS
from tests.scenarios.runner import play

TRANSCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_scenario(path: Path, pytestconfig: pytest.Config) -> None:
    written = path.read_text()
    played = play(written, {**COMMANDS, **CONSUMER_COMMANDS})
    if pytestconfig.getoption("rewrite", default=False):
        path.write_text(played)
    else:
        assert played == written
