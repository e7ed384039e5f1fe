"""The content of a store of Parquet files, as a fold of its manifests: one immutable manifest per committed run. Pure.

A file has the records of one partition. If a range is loaded again, its new files supersede the files within it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from pipeline.errors import PipelineError
from pipeline.ranges import LoadedTopic, Range
from pipeline.topics import PartitionName

FORMAT = 1


class File(NamedTuple):
    """A Parquet file: its path in the store, and the partition and offsets of its records."""

    path: str
    topic: str
    partition: int
    first: int
    last: int
    records: int
    quarantined: bool

    @property
    def key(self) -> PartitionName:
        return PartitionName(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One committed run.

    `topics` has their ids, `partitions` their numbers of partitions. The topics in `dropped` were removed from the
    store first.
    """

    sequence: int
    run: str
    committed_ms: int
    topics: Mapping[str, str]
    partitions: Mapping[str, Sequence[int]]
    ranges: Sequence[Range]
    added: Sequence[File]
    removed: Sequence[str] = ()
    dropped: Sequence[str] = ()
    stream: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> str:
        fields = asdict(self)
        fields["ranges"] = [span._asdict() for span in self.ranges]
        fields["added"] = [file._asdict() for file in self.added]
        return json.dumps({"format": FORMAT, **fields}, indent=1)

    @classmethod
    def from_json(cls, text: str, name: str) -> Manifest:
        """Returns the manifest. Raises PipelineError, which names the file, if the text isn't a manifest of this
        format.
        """
        try:
            fields = json.loads(text)
            if fields.pop("format") != FORMAT:
                raise PipelineError(f"{name}: its format is not {FORMAT}")
            fields["partitions"] = {topic: tuple(counts) for topic, counts in fields["partitions"].items()}
            fields["ranges"] = [Range(**span) for span in fields["ranges"]]
            fields["added"] = [File(**file) for file in fields["added"]]
            return cls(**fields)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PipelineError(f"{name}: not a manifest: {error}") from None


@dataclass(frozen=True, slots=True)
class StoreState:
    """The content of the store after its manifests. `covered` has sorted, disjoint [start, end) per partition."""

    sequence: int = 0
    run: str = ""
    files: Mapping[str, File] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)
    partitions: Mapping[str, Sequence[int]] = field(default_factory=dict)
    covered: Mapping[PartitionName, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    stream: Mapping[str, int] = field(default_factory=dict)

    def loaded(self) -> dict[str, LoadedTopic]:
        """Returns the offsets that an incremental run continues from, by topic."""
        return {
            topic: LoadedTopic(
                topic_id, {number: self.next_offset(PartitionName(topic, number)) for number in self.partitions[topic]}
            )
            for topic, topic_id in self.topics.items()
        }

    def next_offset(self, key: PartitionName) -> int:
        covered = self.covered.get(key)
        return covered[-1][1] if covered else 0

    def missing(self, ranges: Iterable[Range]) -> list[Range]:
        """Returns the parts of ranges that are not loaded, in order."""
        missing: list[Range] = []
        for span in ranges:
            at = span.start
            for start, end in self.covered.get(span.key, ()):
                if at < min(start, span.end):
                    missing.append(span._replace(start=at, end=min(start, span.end)))
                at = max(at, end)
            if at < span.end:
                missing.append(span._replace(start=at))
        return missing

    def describe_loaded(self, topics: Iterable[str] = ()) -> str:
        """Returns a sentence on the offsets up to which topics are loaded; of all topics if none is named."""
        ends = {key: spans[-1][1] for key, spans in sorted(self.covered.items()) if not topics or key.topic in topics}
        return "Loaded: " + (", ".join(f"{key} up to {end - 1}" for key, end in ends.items()) or "nothing yet")

    def files_of(self, topics: Iterable[str] | None = None, *, quarantined: bool | None = False) -> list[File]:
        names = None if topics is None else set(topics)
        return [
            file
            for file in self.files.values()
            if (names is None or file.topic in names) and (quarantined is None or file.quarantined == quarantined)
        ]

    def records(self, topics: Iterable[str] | None = None, *, quarantined: bool | None = None) -> int:
        return sum(file.records for file in self.files_of(topics, quarantined=quarantined))


def applied(state: StoreState, manifest: Manifest) -> StoreState:
    """Returns the state after one more run."""
    gone = {*manifest.removed, *(file.path for file in state.files_of(manifest.dropped, quarantined=None))}
    files = {path: file for path, file in state.files.items() if path not in gone}
    files |= {file.path: file for file in manifest.added}
    covered = {key: spans for key, spans in state.covered.items() if key.topic not in manifest.dropped}
    for span in manifest.ranges:
        covered[span.key] = united([*covered.get(span.key, ()), (span.start, span.end)])
    return StoreState(
        manifest.sequence,
        manifest.run,
        files,
        {**state.topics, **manifest.topics},
        {**state.partitions, **manifest.partitions},
        covered,
        {**state.stream, **manifest.stream},
    )


def folded(manifests: Iterable[Manifest]) -> StoreState:
    """Returns the state after all runs. Raises PipelineError if a manifest is missing."""
    state = StoreState()
    for manifest in manifests:
        if manifest.sequence != state.sequence + 1:
            raise PipelineError(f"manifest {state.sequence + 1} is missing: the next is {manifest.sequence}")
        state = applied(state, manifest)
    return state


def united(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Returns the same offsets as sorted spans that neither overlap nor touch."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


class Overlap(NamedTuple):
    """Files that overlap new ranges: completely inside a range, or partly, whose other records must be kept."""

    within: list[File]
    partly: list[File]


def overlap(files: Iterable[File], ranges: Iterable[Range]) -> Overlap:
    """Returns the files to remove, and the files to rewrite, if these ranges are loaded."""
    by_key = {span.key: span for span in ranges}
    touched = Overlap([], [])
    for file in files:
        new = by_key.get(file.key)
        if new is None or file.last < new.start or file.first >= new.end:
            continue
        whole = new.start <= file.first and file.last < new.end
        (touched.within if whole else touched.partly).append(file)
    return touched
