"""Requests by API: their number, and the times of a sample of them, in milliseconds.

Kafka's responsequeuetimems and responsesendtimems have nothing to stand for here: an answer is written to the socket by
whoever has made it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from broker.clock import NS_PER_MS
from broker.exchange.request_times import FETCH_FOLLOWER, ApiTimes, RequestTimes, TimePart
from broker.metrics.exposition import Family, FamilyKind, Sample, counter, labels
from broker.metrics.sources import Sources
from protocol.api_key import ApiKey

REQUESTS: Final = "kafka_network_requestmetrics"

QUANTILES: Final = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
"""Those of Kafka's histograms, spelled as the JMX exporter's rules make them."""

PARTS: Final[tuple[tuple[str, str, Callable[[ApiTimes], TimePart]], ...]] = (
    ("totaltimems", "Time from a request's bytes to its answer.", attrgetter("total")),
    ("requestqueuetimems", "Time behind other requests of the connection.", attrgetter("queue")),
    ("localtimems", "Time at work on it.", attrgetter("local")),
    ("remotetimems", "Time waiting: for replicas, records, coordinators.", attrgetter("remote")),
)


class RequestRow(NamedTuple):
    """A kind of request: the API keys that it counts."""

    name: str
    keys: tuple[int, ...]


ROWS: Final = (
    *(RequestRow(key.name.title().replace("_", ""), (int(key),)) for key in ApiKey if key is not ApiKey.FETCH),
    RequestRow("Fetch", (int(ApiKey.FETCH), FETCH_FOLLOWER)),
    RequestRow("FetchConsumer", (int(ApiKey.FETCH),)),
    RequestRow("FetchFollower", (FETCH_FOLLOWER,)),
)
"""Kafka's names; a Fetch counts as one of consumers or of followers, and once more among all."""


def request_families(sources: Sources) -> Iterator[Family]:
    """Yields the number of requests, and a summary for each part of their time."""
    times = sources.broker.interceptors.times
    rows = [(row, count) for row in ROWS if (count := sum(times.counts[key] for key in row.keys))]
    yield counter(
        f"{REQUESTS}_requests_total",
        "Requests that were answered.",
        [(labels({"request": row.name}), count) for row, count in rows],
    )
    for name, description, part in PARTS:
        samples = (sample for row, count in rows for sample in summary(times, row, count, part))
        yield Family(f"{REQUESTS}_{name}", FamilyKind.SUMMARY, description, samples)


def summary(times: RequestTimes, row: RequestRow, count: int, part: Callable[[ApiTimes], TimePart]) -> Iterator[Sample]:
    timed = [api for key in row.keys if (api := times.times(key)) is not None]
    values = sorted(value for api in timed for value in part(api).values)
    yield from quantiles(values, {"request": row.name}, NS_PER_MS)
    yield f"_count{labels({'request': row.name})}", count


def quantiles(values: Sequence[float], own: dict[str, str], divisor: int = 1) -> Iterator[Sample]:
    """Yields the quantiles of values in order of size; nothing where there are none."""
    if values:
        for quantile in QUANTILES:
            at = min(int(float(quantile) * len(values)), len(values) - 1)
            yield labels({**own, "quantile": quantile}), round(values[at] / divisor, 6)
