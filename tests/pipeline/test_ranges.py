"""Tests the offsets that a job reads, and the errors that prevent it."""

from __future__ import annotations

import pytest

from pipeline.errors import LostRange, PipelineError, TopicChanged
from pipeline.ranges import (
    EARLIEST,
    LATEST,
    AcceptedLosses,
    ClusterOffsets,
    LoadedTopic,
    Range,
    RangeBounds,
    parse_at,
    parse_bounds,
    parse_offsets,
    plan,
    to_json,
)
from pipeline.topics import PartitionName, TopicDescription

ZERO, ONE = PartitionName("t", 0), PartitionName("t", 1)
TOPIC = TopicDescription("t", "id-a", (0, 1))
THERE = ClusterOffsets({ZERO: 5, ONE: 0}, {ZERO: 100, ONE: 10}, {ZERO: 50, ONE: 10}, {ZERO: 60, ONE: 10})
CONTINUE, NOW = RangeBounds(), RangeBounds()


def planned(
    starting: RangeBounds = CONTINUE,
    ending: RangeBounds = NOW,
    loaded: LoadedTopic | None = None,
    accepted: AcceptedLosses | None = None,
    topic: TopicDescription = TOPIC,
) -> list[Range]:
    before = {} if loaded is None else {"t": loaded}
    return plan([topic], THERE, before, starting, ending, accepted or AcceptedLosses())


def test_a_first_run_takes_all_there_is() -> None:
    assert planned() == [Range("t", 0, 5, 100), Range("t", 1, 0, 10)]


def test_the_next_run_continues_and_leaves_out_what_has_nothing_new() -> None:
    assert planned(loaded=LoadedTopic("id-a", {0: 70, 1: 10})) == [Range("t", 0, 70, 100)]


def test_bounds_by_name_by_offset_and_by_time() -> None:
    loaded = LoadedTopic("id-a", {0: 70, 1: 10})
    assert planned(RangeBounds(named=EARLIEST), loaded=loaded) == [Range("t", 0, 5, 100), Range("t", 1, 0, 10)]
    assert planned(RangeBounds(named=LATEST)) == []
    assert planned(RangeBounds(at_ms=7), RangeBounds(at_ms=9)) == [Range("t", 0, 50, 60)]
    assert planned(RangeBounds(offsets={ZERO: 20}), RangeBounds(offsets={ZERO: 30})) == [Range("t", 0, 20, 30)]
    assert planned(RangeBounds(offsets={ZERO: EARLIEST, ONE: 3}), RangeBounds(offsets={ZERO: 6, ONE: LATEST})) == [
        Range("t", 0, 5, 6),
        Range("t", 1, 3, 10),
    ]


def test_a_lost_range_is_named_and_can_be_accepted() -> None:
    loaded = LoadedTopic("id-a", {0: 2, 1: 10})
    with pytest.raises(LostRange, match=r"t-0: offsets 2 to 4 are lost: .* The partition now begins with 5"):
        planned(loaded=loaded)
    assert planned(loaded=loaded, accepted=AcceptedLosses(lost=True)) == [Range("t", 0, 5, 100)]


def test_new_partitions_are_named_and_can_be_accepted() -> None:
    loaded = LoadedTopic("id-a", {0: 100})
    with pytest.raises(TopicChanged, match=r"t has 2 partitions, 1 when loaded; new: t-1 \(offsets 0 to 9\)"):
        planned(loaded=loaded)
    assert planned(loaded=loaded, accepted=AcceptedLosses(new_partitions=True)) == [Range("t", 1, 0, 10)]


def test_a_topic_of_another_id_is_told_and_begins_anew_when_accepted() -> None:
    loaded = LoadedTopic("id-b", {0: 70, 1: 9})
    with pytest.raises(TopicChanged, match=r"its id is id-a, loaded was id-b\. Loaded: t-0 up to 69, t-1 up to 8"):
        planned(loaded=loaded)
    assert planned(loaded=loaded, accepted=AcceptedLosses(recreated=True)) == [
        Range("t", 0, 5, 100),
        Range("t", 1, 0, 10),
    ]


def test_offsets_beyond_the_end_are_refused() -> None:
    with pytest.raises(PipelineError, match="t-0: offset 101 is requested, but the partition ends with 99"):
        planned(RangeBounds(offsets={ZERO: 101}))
    with pytest.raises(PipelineError, match="t-0: offsets up to 199 are requested, but the partition ends with 99"):
        planned(ending=RangeBounds(offsets={ZERO: 200}))


def test_offsets_are_sparks_json() -> None:
    offsets = {ZERO: 23, ONE: EARLIEST}
    assert parse_offsets(to_json(offsets)) == offsets
    assert to_json(offsets) == '{"t": {"0": 23, "1": -2}}'
    with pytest.raises(PipelineError, match="or JSON of offsets"):
        parse_offsets("[1]")


NOW_MS = 1_769_860_800_000


@pytest.mark.parametrize("text", ["2026-01-31T12:00", "2026-01-31T13:00+01:00", "1769860800000", "-0s"])
def test_times(text: str) -> None:
    assert parse_bounds(f"@{text}", NOW_MS) == RangeBounds(at_ms=NOW_MS)
    assert parse_at("--from", f"@{text}", NOW_MS) == NOW_MS


def test_a_position_is_start_end_or_offsets() -> None:
    assert parse_bounds(None, NOW_MS) == RangeBounds()
    assert parse_bounds("start", NOW_MS) == RangeBounds(named=EARLIEST)
    assert parse_bounds("earliest", NOW_MS) == RangeBounds(named=EARLIEST)
    assert parse_bounds("end", NOW_MS) == RangeBounds(named=LATEST)
    assert parse_bounds('{"t": {"0": 23}}', NOW_MS) == RangeBounds(offsets={ZERO: 23})


def test_what_is_no_position_is_named() -> None:
    with pytest.raises(PipelineError, match="'yesterday' is not a time such as"):
        parse_bounds("@yesterday", NOW_MS)
    with pytest.raises(PipelineError, match="'first' is not start, end, @TIME, or JSON"):
        parse_bounds("first", NOW_MS)
    with pytest.raises(PipelineError, match="--from 2026: expected @TIME"):
        parse_at("--from", "2026", NOW_MS)
