"""Tests the declarations of loads: names, sizes and curves are consistent."""

from __future__ import annotations

import pytest

from bench.clusters.rows import ROWS
from bench.figures import FIGURES
from bench.goals import BY_LOAD
from bench.load import Load, Method
from bench.loads import CURVES, LOADS, LONG, pick, smaller
from bench.peers import PEERS, USUAL
from bench.peers.brokers import OdradekImage, PurePython, WatchedOdradek

EVERYTHING = pick([])


def test_no_name_is_used_twice() -> None:
    names = [load.name for load in EVERYTHING]
    assert len(names) == len(set(names))
    assert not {*LOADS} & {*CURVES}


@pytest.mark.parametrize("load", EVERYTHING, ids=lambda load: load.name)
def test_a_load_shows_known_figures_of_some_work(load: Load) -> None:
    assert set(load.figures) <= set(FIGURES)
    assert load.records or load.method is not Method.TOOL


def test_a_filled_topic_has_the_records_that_are_read_from_it() -> None:
    filled = [load for load in EVERYTHING if load.filled_by is not None and load.name.startswith("consume")]
    assert [load.filled_by.records for load in filled if load.filled_by] == [load.records for load in filled]
    assert all(load.filled_by.record_bytes == load.record_bytes for load in filled if load.filled_by)


def test_a_goal_is_of_a_figure_that_its_load_shows() -> None:
    figures = {name: one.figures for shown in (LOADS, LONG, ROWS) for name, one in shown.items()}
    for name, goals in BY_LOAD.items():
        assert {goal.figure for goal in goals} <= set(figures[name])


def test_words_pick_loads_points_of_curves_and_families() -> None:
    assert [load.name for load in pick(["start-up", "by-connections-10"])] == ["start-up", "by-connections-10"]
    assert [load.name for load in pick(["rows"])] == list(LOADS)
    assert len(pick(["curves"])) == sum(len(curve.points) for curve in CURVES.values())


def test_an_unknown_word_is_refused_by_name() -> None:
    with pytest.raises(KeyError, match="produse"):
        pick(["produse"])


def test_a_smaller_load_fills_its_topic_with_as_few_records() -> None:
    small = smaller(LOADS["consume-fan-out"], 500)
    assert small.filled_by is not None
    assert small.records == small.filled_by.records == 300


def test_ratios_are_to_apache_kafka() -> None:
    assert USUAL == ("odradek", "kafka", "kfake", "floor")
    secured = [f"{broker}-{what}" for what in ("acls", "tls") for broker in ("odradek", "kafka")]
    assert list(PEERS) == [*USUAL, PurePython.name, OdradekImage.name, WatchedOdradek.name, *secured]
