"""Requests by API: their number, and the times of a sample of them, in milliseconds.

Kafka's responsequeuetimems is always 0, because there is no response queue: an answer is written by the code that makes
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from broker.clock import NS_PER_MS
from broker.metrics.exposition import Family, FamilyKind, Sample, counter, labels
from broker.metrics.scrape import Breaks
from broker.metrics.sources import ProcessSources
from broker.request.request_times import FETCH_FOLLOWER, ApiTimes, TimePart
from protocol.api_key import ApiKey

REQUESTS: Final = "kafka_network_requestmetrics"

QUANTILES: Final = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
"""The quantiles of Kafka's histograms, as the JMX exporter's rules spell them."""

NO_TIME: Final = TimePart()
NO_TIME.put(0, 0)


class Part(NamedTuple):
    """A part of a request's time, with its name."""

    name: str
    description: str
    of: Callable[[ApiTimes], TimePart]


PARTS: Final = (
    Part("totaltimems", "Time from the receipt of a request to its answer.", attrgetter("total")),
    Part("requestqueuetimems", "Time spent waiting for earlier requests of the connection.", attrgetter("queue")),
    Part("localtimems", "Time in the handler.", attrgetter("local")),
    Part("remotetimems", "Time spent waiting for replicas, records or coordinators.", attrgetter("remote")),
    Part("responsequeuetimems", "Always 0: there is no response queue.", lambda _: NO_TIME),
    Part("responsesendtimems", "Time from the answer until the kernel has all of it.", attrgetter("send")),
)


class RequestKind(NamedTuple):
    """A kind of request, with its API keys."""

    name: str
    keys: tuple[int, ...]


KINDS: Final = (
    *(RequestKind(key.name.title().replace("_", ""), (int(key),)) for key in ApiKey if key is not ApiKey.FETCH),
    RequestKind("Fetch", (int(ApiKey.FETCH), FETCH_FOLLOWER)),
    RequestKind("FetchConsumer", (int(ApiKey.FETCH),)),
    RequestKind("FetchFollower", (FETCH_FOLLOWER,)),
)
"""Kafka's names. A Fetch counts as a consumer's or a follower's, and also in Fetch."""


class RequestRow(NamedTuple):
    """The requests of one kind, at the time of the scrape."""

    labels: str
    answered: int
    parts: list[list[Sample]]
    """The quantiles of each of PARTS."""


async def request_rows(sources: ProcessSources, breaks: Breaks) -> list[RequestRow]:
    """Returns the kinds with requests."""
    times = sources.host.interceptors.times
    rows: list[RequestRow] = []
    for kind in KINDS:
        if count := sum(times.counts[key] for key in kind.keys):
            timed = [api for key in kind.keys if (api := times.times(key)) is not None]
            parts: list[list[Sample]] = []
            for part in PARTS:
                values = sorted(value for api in timed for value in part.of(api).values)
                parts.append([*quantiles(values, {"request": kind.name}, NS_PER_MS)])
                await breaks.next()
            rows.append(RequestRow(labels({"request": kind.name}), count, parts))
    return rows


def request_families(rows: Sequence[RequestRow]) -> Iterator[Family]:
    """Yields the number of requests, and a summary for each part of their time."""
    counts = [(row.labels, row.answered) for row in rows]
    yield counter(f"{REQUESTS}_requests_total", "Requests that were answered.", counts)
    for number, part in enumerate(PARTS):
        samples = (sample for row in rows for sample in (*row.parts[number], (f"_count{row.labels}", row.answered)))
        yield Family(f"{REQUESTS}_{part.name}", FamilyKind.SUMMARY, part.description, samples)


def quantiles(values: Sequence[float], own: dict[str, str], divisor: int = 1) -> Iterator[Sample]:
    """Yields the quantiles of sorted values; nothing if there are no values."""
    if values:
        for quantile in QUANTILES:
            at = min(int(float(quantile) * len(values)), len(values) - 1)
            yield labels({**own, "quantile": quantile}), round(values[at] / divisor, 6)
