"""Options of replication: how this broker fetches from the leaders of its replicas.

Source: ReplicationConfigs of Apache Kafka 4.3.
"""

from __future__ import annotations

from typing import Final

from protocol.config import CLUSTER_WIDE, INT, STRING, Config, option

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The implementation of replica.selector.class in Apache Kafka."""


class ReplicationOptions(Config):
    """Options of the fetches by which followers replicate."""

    alter_log_dirs_replication_quota_window_num = option(
        "alter.log.dirs.replication.quota.window.num",
        INT,
        11,
        at_least=1,
        importance="low",
        doc="Number of samples that measure copies between log directories.",
    )
    alter_log_dirs_replication_quota_window_size_seconds = option(
        "alter.log.dirs.replication.quota.window.size.seconds",
        INT,
        1,
        at_least=1,
        importance="low",
        doc="Length of each sample that measures copies between log directories.",
    )
    num_replica_fetchers = option(
        "num.replica.fetchers",
        INT,
        1,
        at_least=1,
        importance="high",
        update=CLUSTER_WIDE,
        doc="Number of fetchers per leading broker, each with its own connection and fetch session.",
    )
    replica_fetch_backoff_ms = option(
        "replica.fetch.backoff.ms",
        INT,
        1_000,
        at_least=0,
        doc="Pause after a failed fetch of a partition.",
    )
    replica_fetch_max_bytes = option(
        "replica.fetch.max.bytes",
        INT,
        1_048_576,
        at_least=0,
        doc="Maximum bytes of one partition in one fetch. A larger first batch is fetched all the same.",
    )
    replica_fetch_min_bytes = option(
        "replica.fetch.min.bytes",
        INT,
        1,
        importance="high",
        doc="Bytes for which the leader waits before it answers.",
    )
    replica_fetch_response_max_bytes = option(
        "replica.fetch.response.max.bytes",
        INT,
        10_485_760,
        at_least=0,
        doc="Maximum bytes of one response. A larger first batch is fetched all the same.",
    )
    replica_fetch_wait_max_ms = option(
        "replica.fetch.wait.max.ms",
        INT,
        500,
        importance="high",
        doc="Longest time that the leader waits for replica.fetch.min.bytes. Must be less than "
        "replica.lag.time.max.ms.",
    )
    replica_selector_class = option(
        "replica.selector.class",
        STRING,
        None,
        doc="Class that selects the replica that a consumer reads from. Only Apache Kafka's RackAwareReplicaSelector "
        "is supported: a consumer with client.rack reads from an in-sync replica whose broker.rack is the same. "
        "Unset, all consumers read from the leader.",
    )
    replication_quota_window_num = option(
        "replication.quota.window.num",
        INT,
        11,
        at_least=1,
        importance="low",
        doc="Number of samples that measure throttled replication.",
    )
    replication_quota_window_size_seconds = option(
        "replication.quota.window.size.seconds",
        INT,
        1,
        at_least=1,
        importance="low",
        doc="Length of each sample that measures throttled replication.",
    )
    replica_socket_timeout_ms = option(
        "replica.socket.timeout.ms",
        INT,
        30_000,
        importance="high",
        doc="Time after which a request to a leader fails without an answer. At least replica.fetch.wait.max.ms.",
    )


def selector_problem(config: ReplicationOptions) -> str | None:
    """Returns an error if the configured replica selector is not supported."""
    name = config.replica_selector_class
    if name in (None, "", RACK_AWARE):
        return None
    return f"replica.selector.class is {name}; Java classes are not loaded, only {RACK_AWARE} is supported"
