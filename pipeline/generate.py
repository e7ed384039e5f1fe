"""generate: writes an activity stream, generated from a seed, to a topic."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pipeline.activity import Activity, ActivityEvent, events
from pipeline.cluster import Cluster
from pipeline.errors import PipelineError
from pipeline.producing import Outgoing, Writer, write_all

PACE_EVERY = 64
"""Number of records between two checks of the clock."""


@dataclass(frozen=True, slots=True)
class GenerateConfig:
    """The target of the stream, and its speed: `rate` in records per second, 0 for as fast as the broker accepts
    them.
    """

    bootstrap: str
    topic: str
    activity: Activity
    partitions: int = 4
    rate: float = 0.0
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Generated:
    """The records written, per partition, and the time it took."""

    records: dict[int, int]
    seconds: float

    @property
    def total(self) -> int:
        return sum(self.records.values())


def generate(config: GenerateConfig) -> Generated:
    """Writes the stream to the topic, keyed by user; creates the topic if needed. Raises PipelineError."""
    cluster = Cluster(config.bootstrap, config.properties)
    cluster.topic_names()
    cluster.create(config.topic, config.partitions)
    began = time.monotonic()
    with Writer(config.bootstrap, config.topic, config.properties) as writer:
        write_all(writer, map(outgoing, events(config.activity)), pace(config.rate) if config.rate else None)
    records = dict(sorted(writer.acknowledged.items()))
    if (written := sum(records.values())) != config.activity.records:
        raise PipelineError(f"{config.topic}: {written} of {config.activity.records} records were acknowledged")
    return Generated(records, time.monotonic() - began)


def outgoing(event: ActivityEvent) -> Outgoing:
    return Outgoing(event.user.encode(), event.value(), [("type", event.kind.encode())], event.sent_ms)


def pace(rate: float) -> Callable[[int], None]:
    """Returns a function that waits so that `rate` records per second are written."""
    began = time.monotonic()

    def wait(written: int) -> None:
        if written % PACE_EVERY == 0 and (early := began + written / rate - time.monotonic()) > 0:
            time.sleep(early)

    return wait
