"""The settings of --set NAME=VALUE: the name says which part of a job has the setting."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pipeline.errors import PipelineError

SPARK: Final = "Spark (spark.…)"
CONNECTOR: Final = "Spark's Kafka connector (kafka.…, minPartitions)"
CLIENT: Final = "the client (librdkafka's names)"
SOURCE: Final = "the client of the source (source.…)"
TARGET: Final = "the client of the target (target.…)"

PREFIXES: Final = {"spark.": SPARK, "kafka.": CONNECTOR, "source.": SOURCE, "target.": TARGET}


def parse_settings(words: Iterable[str], *parts: str) -> dict[str, dict[str, str]]:
    """Returns the settings of each part of a job. Raises PipelineError for a setting of a part that the job lacks."""
    settings: dict[str, dict[str, str]] = {part: {} for part in parts}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise PipelineError(f"--set {word}: expected NAME=VALUE, such as security.protocol=SSL")
        part = part_of(name)
        if part not in settings:
            raise PipelineError(f"--set {name}: a setting of {part}; this job has settings of {', '.join(parts)}")
        settings[part][name.partition(".")[2] if part in (SOURCE, TARGET) else name] = value
    return settings


def part_of(name: str) -> str:
    """Returns the part that has a setting. Options of the connector have capital letters; librdkafka's don't."""
    part = next((part for prefix, part in PREFIXES.items() if name.startswith(prefix)), CLIENT)
    return CONNECTOR if part == CLIENT and name != name.lower() else part
