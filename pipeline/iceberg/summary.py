"""What the summary of a table's snapshot says about loads: this run's offsets, and all offsets loaded so far. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from pipeline.errors import PipelineError
from pipeline.manifest import StoreState
from pipeline.ranges import Range
from pipeline.topics import PartitionName

OFFSETS: Final = "odradek.offsets"
"""The run that wrote a snapshot: topic, topic id, run, and one range per partition."""
LOADED: Final = "odradek.loaded"
"""The state of the table after that run, as a value of `StoreState`."""
FORMAT: Final = 1


def summary_of(run: str, ranges: Sequence[Range], state: StoreState) -> dict[str, str]:
    """Returns the properties of the snapshot of a run, after which the table has this state."""
    topics = dict(state.topics)
    offsets = {
        "run": run,
        "topics": topics,
        "ranges": [[span.topic, span.partition, span.start, span.end] for span in ranges],
    }
    return {OFFSETS: json.dumps(offsets), LOADED: to_json(state)}


def to_json(state: StoreState) -> str:
    """Returns a state without its files, which the table itself knows."""
    topics = {
        topic: {
            "id": topic_id,
            "partitions": list(state.partitions[topic]),
            "loaded": {str(key.partition): list(spans) for key, spans in state.covered.items() if key.topic == topic},
        }
        for topic, topic_id in state.topics.items()
    }
    return json.dumps(
        {"format": FORMAT, "sequence": state.sequence, "run": state.run, "topics": topics, "stream": dict(state.stream)}
    )


def from_summary(summary: Mapping[str, str], table: str) -> StoreState | None:
    """Returns the state that a snapshot's summary has; None if no load wrote the snapshot. Raises PipelineError."""
    text = summary.get(LOADED)
    return None if text is None else from_json(text, table)


def from_json(text: str, table: str) -> StoreState:
    """Returns a state. Raises PipelineError, which names the table, if the text isn't a state of this format."""
    try:
        fields = json.loads(text)
        if fields["format"] != FORMAT:
            raise PipelineError(f"{table}: {LOADED} has format {fields['format']}; this version reads {FORMAT}")
        topics: Mapping[str, dict[str, dict[str, list[list[int]]]]] = fields["topics"]
        return StoreState(
            int(fields["sequence"]),
            str(fields["run"]),
            topics={topic: str(entry["id"]) for topic, entry in topics.items()},
            partitions={topic: tuple(map(int, entry["partitions"])) for topic, entry in topics.items()},
            covered={
                PartitionName(topic, int(number)): tuple((int(start), int(end)) for start, end in spans)
                for topic, entry in topics.items()
                for number, spans in entry["loaded"].items()
            },
            stream={str(query): int(batch) for query, batch in fields["stream"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PipelineError(f"{table}: the snapshot's {LOADED} is not a state of a load: {error!r}") from None
