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
        INT, 11, "Number of samples that measure copies between log directories.", at_least=1, importance="low"
    )
    alter_log_dirs_replication_quota_window_size_seconds = option(
        INT, 1, "Length of each sample that measures copies between log directories.", at_least=1, importance="low"
    )
    num_replica_fetchers = option(
        INT,
        1,
        "Number of fetchers per leading broker, each with its own connection and fetch session.",
        at_least=1,
        importance="high",
        update=CLUSTER_WIDE,
    )
    replica_fetch_backoff_ms = option(INT, 1_000, "Pause after a failed fetch of a partition.", at_least=0)
    replica_fetch_max_bytes = option(
        INT,
        1_048_576,
        "Maximum bytes of one partition in one fetch. A larger first batch is fetched anyway.",
        at_least=0,
    )
    replica_fetch_min_bytes = option(INT, 1, "Bytes for which the leader waits before it answers.", importance="high")
    replica_fetch_response_max_bytes = option(
        INT, 10_485_760, "Maximum bytes of one response. A larger first batch is fetched anyway.", at_least=0
    )
    replica_fetch_wait_max_ms = option(
        INT,
        500,
        "Longest time that the leader waits for replica.fetch.min.bytes. Must be less than replica.lag.time.max.ms.",
        importance="high",
    )
    replica_selector_class = option(
        STRING,
        None,
        "Class that selects the replica that a consumer reads from. Only Apache Kafka's RackAwareReplicaSelector "
        "is supported: a consumer with client.rack reads from an in-sync replica whose broker.rack is the same. "
        "Unset, all consumers read from the leader.",
    )
    replication_quota_window_num = option(
        INT, 11, "Number of samples that measure throttled replication.", at_least=1, importance="low"
    )
    replication_quota_window_size_seconds = option(
        INT, 1, "Length of each sample that measures throttled replication.", at_least=1, importance="low"
    )
    replica_socket_timeout_ms = option(
        INT,
        30_000,
        "Time after which a request to a leader fails without an answer. At least replica.fetch.wait.max.ms.",
        importance="high",
    )


def selector_problem(config: ReplicationOptions) -> str | None:
    """Returns an error if the configured replica selector is not supported."""
    name = config.replica_selector_class
    if name in (None, "", RACK_AWARE):
        return None
    return f"replica.selector.class is {name}; Java classes are not loaded, only {RACK_AWARE} is supported"
