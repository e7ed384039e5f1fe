"""Tests how Spark's reports on a stream are parsed."""

from __future__ import annotations

import json

import pytest

from pipeline.errors import PipelineError
from pipeline.progress import Trigger, TriggerKind, offsets_in, parse_trigger, progress_of, ranges_between
from pipeline.ranges import Range
from pipeline.topics import PartitionName

ZERO, ONE = PartitionName("t", 0), PartitionName("t", 1)


@pytest.mark.parametrize(
    ("text", "trigger"),
    [
        ("now", Trigger()),
        ("10s", Trigger(TriggerKind.PROCESSING_TIME, "10 seconds")),
        ("250ms", Trigger(TriggerKind.PROCESSING_TIME, "250 milliseconds")),
        ("continuous:1s", Trigger(TriggerKind.CONTINUOUS, "1 seconds")),
    ],
)
def test_triggers(text: str, trigger: Trigger) -> None:
    assert parse_trigger(text) == trigger


@pytest.mark.parametrize("text", ["", "soon", "10", "now:1s", "continuous"])
def test_what_is_no_trigger(text: str) -> None:
    with pytest.raises(PipelineError, match="is not a trigger"):
        parse_trigger(text)


@pytest.mark.parametrize("text", ['v1\n{"batchWatermarkMs":0}\n{"t":{"0":5}}', '\0v1\n{"t":{"0":5}}'])
def test_offsets_of_a_checkpoint(text: str) -> None:
    assert offsets_in(text) == {ZERO: 5}


def test_a_checkpoint_of_another_version_is_refused() -> None:
    with pytest.raises(PipelineError, match="other than v1"):
        offsets_in('v2\n{"t":{"0":5}}')


def test_a_partition_that_is_new_begins_with_its_first_offset() -> None:
    assert ranges_between({ZERO: 3}, {ZERO: 3, ONE: 9}, {ZERO: 0, ONE: 2}) == [Range("t", 1, 2, 9)]


def test_lag_is_what_the_topic_has_beyond_the_batch() -> None:
    progress = progress_of(
        {
            "batchId": 4,
            "numInputRows": 10,
            "timestamp": "2026-01-01T00:00:00.000Z",
            "processedRowsPerSecond": 12.34,
            "sources": [{"endOffset": '{"t":{"0":5,"1":7}}', "latestOffset": {"t": {"0": 9, "1": 7}}}],
            "stateOperators": [{"numRowsDroppedByWatermark": 2}],
            "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
        }
    )
    assert progress.lag == {ZERO: 4, ONE: 0}
    assert progress.dropped_late == 2
    assert json.loads(progress.to_json())["lag"] == {"t-0": 4, "t-1": 0}
