"""The replicas here that follow other brokers, and their lag.

Source: AbstractFetcherManager, FetcherLagStats.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from broker.metrics.exposition import Family, gauge, labels
from broker.metrics.scrape import Breaks
from broker.metrics.sources import Sources
from coordinator.replication.states import FetchState

MANAGER: Final = "kafka_server_replicafetchermanager"
REPLICA: Final = labels({"clientId": "Replica"})


class FollowedRow(NamedTuple):
    """A replica that follows another broker, at the time of the scrape."""

    labels: str
    lag: int | None
    """Committed records that the replica lacks; None before its leader has answered."""
    has_failed: bool


async def followed_rows(sources: Sources, breaks: Breaks) -> list[FollowedRow]:
    """Returns all following replicas here."""
    rows: list[FollowedRow] = []
    for fetcher in sources.fetchers.fetchers() if sources.fetchers is not None else ():
        client = f"ReplicaFetcherThread-{fetcher.fetcher_id}-{fetcher.leader_id}"  # Kafka's name of the thread
        for followed in fetcher.followed():
            topic, partition = followed.name
            own = f'{{clientId="{client}",topic="{topic}",partition="{partition}"}}'
            committed = followed.leader_high_watermark
            lag = None if committed is None else max(committed - followed.replica.log_end_offset, 0)
            rows.append(FollowedRow(own, lag, followed.state is FetchState.FAILED))
            await breaks.next()
    return rows


def follower_families(rows: list[FollowedRow]) -> Iterator[Family]:
    """Yields each replica's lag, the greatest lag, and the number of failed replicas."""
    failed, worst = sum(row.has_failed for row in rows), max((row.lag or 0 for row in rows), default=0)
    yield gauge((f"{MANAGER}_maxlag"), "Most committed records that a replica lacks.", [(REPLICA, worst)])
    yield gauge(
        f"{MANAGER}_failedpartitionscount",
        "Replicas that are no longer followed in this leader epoch.",
        [(REPLICA, failed)],
    )
    yield gauge(
        "kafka_server_fetcherlagmetrics_consumerlag",
        "Committed records that a replica lacks.",
        ((row.labels, row.lag) for row in rows if row.lag is not None),
    )
