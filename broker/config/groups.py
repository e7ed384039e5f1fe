"""Group coordination: the offsets topic, classic groups, and consumer groups (KIP-848)."""

from __future__ import annotations

from typing import Final

from protocol.config import BOOLEAN, CLUSTER_WIDE, INT, LIST, LONG, SHORT, STRING, Check, Config, option

MAX_INT: Final = (1 << 31) - 1

MIGRATION_POLICIES: Final = ("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL")


def _migration_policy(_name: str, value: object) -> str | None:
    is_valid = str(value).upper() in MIGRATION_POLICIES
    return None if is_valid else f"String must be one of (case insensitive): {', '.join(MIGRATION_POLICIES)}"


MIGRATION_POLICY: Final = Check(f"(case insensitive) [{', '.join(MIGRATION_POLICIES)}]", _migration_policy)


class GroupOptions(Config):
    """Group coordination: the offsets topic, classic groups, and consumer groups (KIP-848)."""

    group_coordinator_rebalance_protocols = option(
        LIST,
        ("classic", "consumer", "streams"),
        "Group protocols that the broker supports.",
        one_of=("consumer", "classic", "share", "streams"),
        may_be_empty=False,
    )
    group_coordinator_append_linger_ms = option(
        INT,
        -1,
        "Longest time that the coordinator gathers records into one batch; -1 adapts it to the load.",
        at_least=-1,
    )
    group_coordinator_cached_buffer_max_bytes = option(
        INT, 1_048_588, "Has no effect: each batch has its own buffer.", at_least=524_288, update=CLUSTER_WIDE
    )
    group_initial_rebalance_delay_ms = option(
        INT, 3_000, "Time that the first rebalance of an empty classic group waits for more members."
    )
    group_max_session_timeout_ms = option(INT, 1_800_000, "Longest session timeout that a classic member may request.")
    group_min_session_timeout_ms = option(INT, 6_000, "Shortest session timeout that a classic member may request.")
    group_max_size = option(INT, MAX_INT, "Maximum number of members in a classic group.", at_least=1)
    group_consumer_assignment_interval_ms = option(
        INT, 1_000, "Shortest time between two computed assignments of a group.", at_least=0, update=CLUSTER_WIDE
    )
    group_consumer_assignor_offload_enable = option(
        BOOLEAN,
        True,
        "Has no effect: the broker decides where an assignor runs.",
        update=CLUSTER_WIDE,
        internal=True,
    )
    group_consumer_assignors = option(
        LIST, ("uniform", "range"), "Server-side assignors; the first is the default.", may_be_empty=False
    )
    group_consumer_heartbeat_interval_ms = option(
        INT, 5_000, "Interval between two heartbeats of a member.", at_least=1
    )
    group_consumer_max_assignment_interval_ms = option(
        INT, 15_000, "Largest consumer.assignment.interval.ms that a group may have.", at_least=0
    )
    group_consumer_max_heartbeat_interval_ms = option(
        INT, 15_000, "Largest consumer.heartbeat.interval.ms that a group may have.", at_least=1
    )
    group_consumer_max_session_timeout_ms = option(
        INT, 60_000, "Largest consumer.session.timeout.ms that a group may have.", at_least=1
    )
    group_consumer_max_size = option(INT, MAX_INT, "Maximum number of members in a consumer group.", at_least=1)
    group_consumer_migration_policy = option(
        STRING,
        "bidirectional",
        "Whether groups may move between the classic and the consumer protocol, and in which direction.",
        check=MIGRATION_POLICY,
    )
    group_consumer_min_assignment_interval_ms = option(
        INT, 0, "Smallest consumer.assignment.interval.ms that a group may have.", at_least=0
    )
    group_consumer_min_heartbeat_interval_ms = option(
        INT, 5_000, "Smallest consumer.heartbeat.interval.ms that a group may have.", at_least=1
    )
    group_consumer_min_session_timeout_ms = option(
        INT, 45_000, "Smallest consumer.session.timeout.ms that a group may have.", at_least=1
    )
    group_consumer_regex_refresh_interval_ms = option(
        INT,
        600_000,
        "Interval after which a subscribed pattern is matched against the topics again.",
        at_least=10_000,
        internal=True,
    )
    group_consumer_session_timeout_ms = option(
        INT, 45_000, "A member is removed after this time without a heartbeat.", at_least=1
    )
    offset_metadata_max_bytes = option(
        INT, 4_096, "Maximum size of the metadata text of a committed offset.", importance="high"
    )
    offsets_commit_timeout_ms = option(
        INT,
        5_000,
        "Time after which a commit fails if its records are not replicated yet.",
        at_least=1,
        importance="high",
    )
    offsets_load_buffer_size = option(
        INT,
        5_242_880,
        "Has no effect: a coordinator loads its partition in pieces of 64 KiB, and serves clients between them.",
        at_least=1,
        importance="high",
    )
    offsets_retention_check_interval_ms = option(
        LONG, 600_000, "How often the coordinator checks for expired offsets.", at_least=1, importance="high"
    )
    offsets_retention_minutes = option(
        INT, 10_080, "Time that offsets of a group without members are retained.", at_least=1, importance="high"
    )
    offsets_topic_compression_codec = option(
        INT, 0, "Codec of the offsets topic: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.", importance="high"
    )
    offsets_topic_num_partitions = option(
        INT,
        50,
        "Number of partitions of the offsets topic. Do not change it once the topic exists.",
        at_least=1,
        importance="high",
    )
    offsets_topic_replication_factor = option(
        SHORT,
        3,
        "Replication factor of the offsets topic; lower if there are fewer brokers.",
        at_least=1,
        importance="high",
    )
    offsets_topic_segment_bytes = option(
        INT, 104_857_600, "Size at which a segment of the offsets topic rolls.", at_least=1, importance="high"
    )
