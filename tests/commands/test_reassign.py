"""Tests the options of `odradek topic reassign`: the brokers for each partition."""

from __future__ import annotations

import pytest

from commands.errors import CommandError
from commands.words.reassign import assigned_partitions


def test_partitions_are_assigned_with_the_leader_first() -> None:
    assert assigned_partitions(["1:2,1", "0:1"]) == {1: [2, 1], 0: [1]}


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (["0"], "0: expected PARTITION:BROKER"),
        (["-1:1"], "-1:1: expected PARTITION:BROKER"),
        (["0:one"], "0:one: expected PARTITION:BROKER"),
        (["0:1,"], "0:1,: expected PARTITION:BROKER"),
        (["0:1,1"], "0:1,1: a broker is named twice"),
        (["0:1", "0:2"], "0:2: partition 0 is already assigned"),
    ],
)
def test_what_makes_no_assignment_is_named(texts: list[str], problem: str) -> None:
    with pytest.raises(CommandError) as refused:
        assigned_partitions(texts)
    assert f"--assign {problem}" in str(refused.value)
