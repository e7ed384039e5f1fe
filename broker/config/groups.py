"""Group coordination: the offsets topic, classic groups, and consumer groups (KIP-848)."""

from __future__ import annotations

from typing import Final

from protocol.config import CLUSTER_WIDE, INT, LIST, LONG, SHORT, STRING, Check, Config, option

MAX_INT: Final = (1 << 31) - 1

MIGRATION_POLICIES: Final = ("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL")


def _migration_policy(_name: str, value: object) -> str | None:
    is_valid = str(value).upper() in MIGRATION_POLICIES
    return None if is_valid else f"String must be one of (case insensitive): {', '.join(MIGRATION_POLICIES)}"


MIGRATION_POLICY: Final = Check(f"(case insensitive) [{', '.join(MIGRATION_POLICIES)}]", _migration_policy)


class GroupOptions(Config):
    """Group coordination: the offsets topic, classic groups, and consumer groups (KIP-848)."""

    group_coordinator_rebalance_protocols = option(
        "group.coordinator.rebalance.protocols",
        LIST,
        ("classic", "consumer", "streams"),
        one_of=("consumer", "classic", "share", "streams"),
        may_be_empty=False,
        doc="Group protocols that the broker supports.",
    )
    group_coordinator_append_linger_ms = option(
        "group.coordinator.append.linger.ms",
        INT,
        -1,
        at_least=-1,
        doc="Longest time that the coordinator gathers records into one batch; -1 adapts it to the load.",
    )
    group_coordinator_cached_buffer_max_bytes = option(
        "group.coordinator.cached.buffer.max.bytes",
        INT,
        1_048_588,
        at_least=524_288,
        update=CLUSTER_WIDE,
        doc="Has no effect: each batch has its own buffer.",
    )
    group_initial_rebalance_delay_ms = option(
        "group.initial.rebalance.delay.ms",
        INT,
        3_000,
        doc="Time that the first rebalance of an empty classic group waits for more members.",
    )
    group_max_session_timeout_ms = option(
        "group.max.session.timeout.ms", INT, 1_800_000, doc="Longest session timeout that a classic member may request."
    )
    group_min_session_timeout_ms = option(
        "group.min.session.timeout.ms", INT, 6_000, doc="Shortest session timeout that a classic member may request."
    )
    group_max_size = option(
        "group.max.size", INT, MAX_INT, at_least=1, doc=("Maximum number of members in a classic group.")
    )
    group_consumer_assignment_interval_ms = option(
        "group.consumer.assignment.interval.ms",
        INT,
        1_000,
        at_least=0,
        update=CLUSTER_WIDE,
        doc="Shortest time between two computed assignments of a group.",
    )
    group_consumer_assignors = option(
        "group.consumer.assignors",
        LIST,
        ("uniform", "range"),
        may_be_empty=False,
        doc="Server-side assignors; the first is the default.",
    )
    group_consumer_heartbeat_interval_ms = option(
        "group.consumer.heartbeat.interval.ms",
        INT,
        5_000,
        at_least=1,
        doc=("Interval between two heartbeats of a member."),
    )
    group_consumer_max_assignment_interval_ms = option(
        "group.consumer.max.assignment.interval.ms",
        INT,
        15_000,
        at_least=0,
        doc="Largest consumer.assignment.interval.ms that a group may have.",
    )
    group_consumer_max_heartbeat_interval_ms = option(
        "group.consumer.max.heartbeat.interval.ms",
        INT,
        15_000,
        at_least=1,
        doc="Largest consumer.heartbeat.interval.ms that a group may have.",
    )
    group_consumer_max_session_timeout_ms = option(
        "group.consumer.max.session.timeout.ms",
        INT,
        60_000,
        at_least=1,
        doc="Largest consumer.session.timeout.ms that a group may have.",
    )
    group_consumer_max_size = option(
        "group.consumer.max.size", INT, MAX_INT, at_least=1, doc="Maximum number of members in a consumer group."
    )
    group_consumer_migration_policy = option(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        check=MIGRATION_POLICY,
        doc="Whether groups may move between the classic and the consumer protocol, and in which direction.",
    )
    group_consumer_min_assignment_interval_ms = option(
        "group.consumer.min.assignment.interval.ms",
        INT,
        0,
        at_least=0,
        doc="Smallest consumer.assignment.interval.ms that a group may have.",
    )
    group_consumer_min_heartbeat_interval_ms = option(
        "group.consumer.min.heartbeat.interval.ms",
        INT,
        5_000,
        at_least=1,
        doc="Smallest consumer.heartbeat.interval.ms that a group may have.",
    )
    group_consumer_min_session_timeout_ms = option(
        "group.consumer.min.session.timeout.ms",
        INT,
        45_000,
        at_least=1,
        doc="Smallest consumer.session.timeout.ms that a group may have.",
    )
    group_consumer_regex_refresh_interval_ms = option(
        "group.consumer.regex.refresh.interval.ms",
        INT,
        600_000,
        at_least=10_000,
        internal=True,
        doc="Interval after which a subscribed pattern is matched against the topics again.",
    )
    group_consumer_session_timeout_ms = option(
        "group.consumer.session.timeout.ms",
        INT,
        45_000,
        at_least=1,
        doc="A member is removed after this time without a heartbeat.",
    )
    offset_metadata_max_bytes = option(
        "offset.metadata.max.bytes",
        INT,
        4_096,
        importance="high",
        doc=("Maximum size of the metadata text of a committed offset."),
    )
    offsets_commit_timeout_ms = option(
        "offsets.commit.timeout.ms",
        INT,
        5_000,
        at_least=1,
        importance="high",
        doc="Time after which a commit fails if its records are not replicated yet.",
    )
    offsets_load_buffer_size = option(
        "offsets.load.buffer.size",
        INT,
        5_242_880,
        at_least=1,
        importance="high",
        doc="Has no effect: a coordinator loads its partition in pieces of 64 KiB, and serves clients between them.",
    )
    offsets_retention_check_interval_ms = option(
        "offsets.retention.check.interval.ms",
        LONG,
        600_000,
        at_least=1,
        importance="high",
        doc="How often the coordinator checks for expired offsets.",
    )
    offsets_retention_minutes = option(
        "offsets.retention.minutes",
        INT,
        10_080,
        at_least=1,
        importance="high",
        doc="Time that offsets of a group without members are retained.",
    )
    offsets_topic_compression_codec = option(
        "offsets.topic.compression.codec",
        INT,
        0,
        importance="high",
        doc="Codec of the offsets topic: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    )
    offsets_topic_num_partitions = option(
        "offsets.topic.num.partitions",
        INT,
        50,
        at_least=1,
        importance="high",
        doc="Number of partitions of the offsets topic. Do not change it once the topic exists.",
    )
    offsets_topic_replication_factor = option(
        "offsets.topic.replication.factor",
        SHORT,
        3,
        at_least=1,
        importance="high",
        doc="Replication factor of the offsets topic; lower if there are fewer brokers.",
    )
    offsets_topic_segment_bytes = option(
        "offsets.topic.segment.bytes",
        INT,
        104_857_600,
        at_least=1,
        importance="high",
        doc="Size at which a segment of the offsets topic rolls.",
    )
