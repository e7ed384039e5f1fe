"""A stream's progress, and Spark's files and messages about it, as values. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypedDict

from pipeline.errors import PipelineError
from pipeline.ranges import Range, parse_offsets
from pipeline.topics import PartitionName


class TriggerKind(Enum):
    """When a stream starts its batches."""

    AVAILABLE_NOW = "available-now"
    PROCESSING_TIME = "processing-time"
    CONTINUOUS = "continuous"


@dataclass(frozen=True, slots=True)
class Trigger:
    """A kind, and an interval unless the kind is available-now."""

    kind: TriggerKind = TriggerKind.AVAILABLE_NOW
    interval: str = ""


UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}


def parse_trigger(text: str) -> Trigger:
    """Parses `now`, an interval like `10s`, or `continuous:1s`. Raises PipelineError."""
    if text == "now":
        return Trigger()
    kind, _, interval = text.rpartition(":")
    match = re.fullmatch(r"(\d+)(ms|s|m|h)", interval)
    if match is None or kind not in ("", "continuous"):
        raise PipelineError(f"{text!r} is not a trigger such as now, 10s, or continuous:1s")
    which = TriggerKind.CONTINUOUS if kind else TriggerKind.PROCESSING_TIME
    return Trigger(which, f"{match[1]} {UNITS[match[2]]}")


class SourceProgress(TypedDict):
    """Spark's report on a source; offsets are JSON, or its content."""

    endOffset: str | dict[str, dict[str, int]] | None
    latestOffset: str | dict[str, dict[str, int]] | None


class Operator(TypedDict):
    """Spark's report on a stateful operator."""

    numRowsDroppedByWatermark: int


class Raw(TypedDict):
    """The part of Spark's StreamingQueryProgress that is used here."""

    batchId: int
    numInputRows: int
    timestamp: str
    processedRowsPerSecond: float
    sources: list[SourceProgress]
    stateOperators: list[Operator]
    eventTime: dict[str, str]


class BatchProgress(NamedTuple):
    """One batch: its records, their rate, the lag behind the topic, and the records that are too late for the
    watermark.
    """

    batch: int
    at: str
    rows: int
    rows_per_second: float
    lag: dict[PartitionName, int]
    watermark: str | None
    dropped_late: int

    def to_json(self) -> str:
        lag = {str(key): behind for key, behind in sorted(self.lag.items())}
        return json.dumps({**self._asdict(), "lag": lag})


def progress_of(raw: Raw) -> BatchProgress:
    lag: dict[PartitionName, int] = {}
    for source in raw["sources"]:
        end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        lag |= {key: max(0, latest[key] - end.get(key, 0)) for key in latest}
    return BatchProgress(
        raw["batchId"],
        raw["timestamp"],
        raw["numInputRows"],
        round(raw.get("processedRowsPerSecond") or 0.0, 1),
        lag,
        (raw.get("eventTime") or {}).get("watermark"),
        sum(operator.get("numRowsDroppedByWatermark", 0) for operator in raw.get("stateOperators") or []),
    )


def _offsets(text: str | dict[str, dict[str, int]] | None) -> dict[PartitionName, int]:
    if not text:
        return {}
    return parse_offsets(text if isinstance(text, str) else json.dumps(text))


def offsets_in(text: str) -> dict[PartitionName, int]:
    """Returns the Kafka offsets in the last line of a file in a checkpoint's `offsets/` or `sources/0/`. Raises
    PipelineError.
    """
    lines = text.strip("\0\n").splitlines()
    if not lines or not lines[0].lstrip("\0").startswith("v1"):
        raise PipelineError("the checkpoint's offset log is of a version other than v1")
    return parse_offsets(lines[-1])


def ranges_between(
    starts: Mapping[PartitionName, int], ends: Mapping[PartitionName, int], first: Mapping[PartitionName, int]
) -> list[Range]:
    """Returns the ranges between two sets of offsets."""
    begun = {key: starts.get(key, first.get(key, 0)) for key in ends}
    return [Range(*key, begun[key], end) for key, end in sorted(ends.items()) if begun[key] < end]
