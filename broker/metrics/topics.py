"""Traffic by topic, and in total. Source: BrokerTopicMetrics, under the JMX exporter's names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Final, NamedTuple

from broker.metrics.exposition import Family, Sample, counter, labels
from broker.metrics.sources import Sources
from broker.replica.traffic import TopicTraffic


class TopicCount(NamedTuple):
    """A count of TopicTraffic, and its name."""

    name: str
    description: str
    value: Callable[[TopicTraffic], int]
    by_topic: bool = True


COUNTS: Final = (
    TopicCount("bytesin", "Bytes that were produced.", attrgetter("bytes_in")),
    TopicCount("bytesout", "Bytes of records that consumers fetched.", attrgetter("bytes_out")),
    TopicCount("messagesin", "Records that were produced.", attrgetter("messages_in")),
    TopicCount("totalproducerequests", "Appends to partitions.", attrgetter("appends")),
    TopicCount("failedproducerequests", "Appends that failed unexpectedly.", attrgetter("failed_appends")),
    TopicCount("totalfetchrequests", "Reads of partitions.", attrgetter("reads")),
    TopicCount("failedfetchrequests", "Reads that failed unexpectedly.", attrgetter("failed_reads")),
    TopicCount(
        "producemessageconversions",
        ("Records that producers sent in an older message format."),
        attrgetter("produce_conversions"),
    ),
    TopicCount(
        "fetchmessageconversions",
        ("Records that were sent to consumers in an older message format."),
        attrgetter("fetch_conversions"),
    ),
    TopicCount(
        "replicationbytesin",
        ("Bytes that this broker fetched from leaders."),
        attrgetter("replication_bytes_in"),
        False,
    ),
    TopicCount("replicationbytesout", "Bytes that followers fetched.", attrgetter("replication_bytes_out"), False),
)


def topic_families(sources: Sources) -> Iterator[Family]:
    """Yields a family for each count."""
    traffic = sources.broker.replicas.traffic
    total = traffic.total()
    topics = [(labels({"topic": name}), counts) for name, counts in traffic.topics()]
    for count in COUNTS:
        name = f"kafka_server_brokertopicmetrics_{count.name}_total"
        yield counter(name, count.description, samples(count, total, topics))


def samples(count: TopicCount, total: TopicTraffic, topics: list[tuple[str, TopicTraffic]]) -> Iterator[Sample]:
    yield "", count.value(total)
    if count.by_topic:
        yield from ((own, count.value(counts)) for own, counts in topics)
