"""How this broker follows the leaders of its replicas. Source: ReplicationConfigs of Apache Kafka 4.3."""

from __future__ import annotations

from typing import Final

from protocol.config import CLUSTER_WIDE, INT, STRING, Config, option

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The implementation of replica.selector.class that comes with Apache Kafka."""


class ReplicationOptions(Config):
    """The fetches by which replicas follow their leaders."""

    alter_log_dirs_replication_quota_window_num = option(
        "alter.log.dirs.replication.quota.window.num",
        INT,
        11,
        at_least=1,
        importance="low",
        doc="Samples kept to measure what is copied between log directories.",
    )
    alter_log_dirs_replication_quota_window_size_seconds = option(
        "alter.log.dirs.replication.quota.window.size.seconds",
        INT,
        1,
        at_least=1,
        importance="low",
        doc="Length of one such sample.",
    )
    num_replica_fetchers = option(
        "num.replica.fetchers",
        INT,
        1,
        at_least=1,
        importance="high",
        update=CLUSTER_WIDE,
        doc="Fetchers per leading broker, each with a connection and a fetch session of its own.",
    )
    replica_fetch_backoff_ms = option(
        "replica.fetch.backoff.ms",
        INT,
        1_000,
        at_least=0,
        doc="The pause after a failed fetch of a partition.",
    )
    replica_fetch_max_bytes = option(
        "replica.fetch.max.bytes",
        INT,
        1_048_576,
        at_least=0,
        doc="The most that is fetched of one partition at once. A first batch that is larger is fetched all the same.",
    )
    replica_fetch_min_bytes = option(
        "replica.fetch.min.bytes",
        INT,
        1,
        importance="high",
        doc="How much the leader waits for before it answers.",
    )
    replica_fetch_response_max_bytes = option(
        "replica.fetch.response.max.bytes",
        INT,
        10_485_760,
        at_least=0,
        doc="The most that one answer has. A first batch that is larger is fetched all the same.",
    )
    replica_fetch_wait_max_ms = option(
        "replica.fetch.wait.max.ms",
        INT,
        500,
        importance="high",
        doc="How long the leader may wait for that much. Less than replica.lag.time.max.ms.",
    )
    replica_selector_class = option(
        "replica.selector.class",
        STRING,
        None,
        doc="What chooses the replica that a consumer reads from, by the name of Apache Kafka's class: "
        "RackAwareReplicaSelector sends one with client.rack to an in-sync replica whose broker.rack that is. Unset, "
        "all are left with the leader.",
    )
    replication_quota_window_num = option(
        "replication.quota.window.num",
        INT,
        11,
        at_least=1,
        importance="low",
        doc="Samples kept to measure throttled replication.",
    )
    replication_quota_window_size_seconds = option(
        "replication.quota.window.size.seconds",
        INT,
        1,
        at_least=1,
        importance="low",
        doc="Length of one such sample.",
    )
    replica_socket_timeout_ms = option(
        "replica.socket.timeout.ms",
        INT,
        30_000,
        importance="high",
        doc="How long an answer of a leader may take. At least replica.fetch.wait.max.ms.",
    )


def selector_problem(config: ReplicationOptions) -> str | None:
    """Returns what is wrong with the class that chooses replicas to read from."""
    name = config.replica_selector_class
    if name in (None, "", RACK_AWARE):
        return None
    return f"replica.selector.class is {name}; classes of Java are not loaded, but {RACK_AWARE}"
