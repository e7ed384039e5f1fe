"""Tests that each transcript in `transactions` and `replication` matches the present effects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.scenarios import replicating, transacting

PLAYS: dict[str, Callable[[str], str]] = {"transactions": transacting.play, "replication": replicating.play}
TRANSCRIPTS = sorted(path for folder in PLAYS for path in (Path(__file__).parent / folder).glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_scenario(path: Path, pytestconfig: pytest.Config) -> None:
    written = path.read_text()
    played = PLAYS[path.parent.name](written)
    if pytestconfig.getoption("rewrite", default=False):
        path.write_text(played)
    else:
        assert played == written
