"""generate: an activity stream out of a seed, into a topic."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pipeline.activity import Activity, ActivityEvent, events
from pipeline.cluster import Cluster
from pipeline.errors import PipelineError
from pipeline.producing import Outgoing, Writer, write_all

PACE_EVERY = 64
"""Records between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class GenerateConfig:
    """Where the stream goes, and how fast: `rate` in records per second, 0 for as fast as the broker takes them."""

    bootstrap: str
    topic: str
    activity: Activity
    partitions: int = 4
    rate: float = 0.0
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Generated:
    """Records written, per partition, and the time that took."""

    records: dict[int, int]
    seconds: float

    @property
    def total(self) -> int:
        return sum(self.records.values())


def generate(config: GenerateConfig) -> Generated:
    """Create the topic if need be and write the stream to it, keyed by user. Raises PipelineError."""
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
