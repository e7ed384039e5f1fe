"""Share groups (KIP-932) and the coordinator of their state."""

from __future__ import annotations

from protocol.config import BOOLEAN, CLUSTER_WIDE, INT, LIST, SHORT, STRING, Config, option


class ShareOptions(Config):
    """Share groups (KIP-932) and the coordinator of their state."""

    # Options that Kafka 4.3 does not have are internal: DescribeConfigs returns them only when they are set.

    errors_deadletterqueue_auto_create_topics_enable = option(
        "errors.deadletterqueue.auto.create.topics.enable",
        BOOLEAN,
        False,
        update=CLUSTER_WIDE,
        internal=True,
        doc="Create the dead-letter queue topic of a share group if it does not exist (KIP-1191).",
    )
    errors_deadletterqueue_topic_name_prefix = option(
        "errors.deadletterqueue.topic.name.prefix",
        STRING,
        "dlq.",
        update=CLUSTER_WIDE,
        internal=True,
        doc="Required prefix of the name of a dead-letter queue topic (KIP-1191).",
    )
    group_share_assignment_interval_ms = option(
        "group.share.assignment.interval.ms",
        INT,
        1_000,
        at_least=0,
        update=CLUSTER_WIDE,
        doc="Shortest time between two computed assignments of a group.",
    )
    group_share_assignors = option(
        "group.share.assignors", LIST, ("simple",), may_be_empty=False, doc="Server-side assignors."
    )
    group_share_delivery_count_limit = option(
        "group.share.delivery.count.limit",
        INT,
        5,
        at_least=2,
        at_most=10,
        doc="Number of deliveries after which a record is archived.",
    )
    group_share_heartbeat_interval_ms = option(
        "group.share.heartbeat.interval.ms", INT, 5_000, at_least=1, doc="Interval between two heartbeats of a member."
    )
    group_share_initialize_retry_interval_ms = option(
        "group.share.initialize.retry.interval.ms",
        INT,
        30_000,
        at_least=1,
        importance="low",
        internal=True,
        doc="Interval after which the initialisation of share partitions is retried.",
    )
    group_share_max_assignment_interval_ms = option(
        "group.share.max.assignment.interval.ms",
        INT,
        15_000,
        at_least=0,
        doc="Largest share.assignment.interval.ms that a group may have.",
    )
    group_share_max_delivery_count_limit = option(
        "group.share.max.delivery.count.limit",
        INT,
        10,
        at_least=5,
        at_most=25,
        doc="Largest share.delivery.count.limit that a group may have.",
    )
    group_share_max_heartbeat_interval_ms = option(
        "group.share.max.heartbeat.interval.ms",
        INT,
        15_000,
        at_least=1,
        doc="Largest share.heartbeat.interval.ms that a group may have.",
    )
    group_share_max_partition_max_record_locks = option(
        "group.share.max.partition.max.record.locks",
        INT,
        4_000,
        at_least=2_000,
        at_most=10_000,
        doc="Largest share.partition.max.record.locks that a group may have.",
    )
    group_share_max_record_lock_duration_ms = option(
        "group.share.max.record.lock.duration.ms",
        INT,
        60_000,
        at_least=30_000,
        at_most=3_600_000,
        doc="Largest share.record.lock.duration.ms that a group may have.",
    )
    group_share_max_session_timeout_ms = option(
        "group.share.max.session.timeout.ms",
        INT,
        60_000,
        at_least=1,
        doc="Largest share.session.timeout.ms that a group may have.",
    )
    group_share_max_share_sessions = option(
        "group.share.max.share.sessions", INT, 2_000, at_least=1, doc="Maximum number of share sessions of the broker."
    )
    group_share_max_size = option(
        "group.share.max.size", INT, 200, at_least=1, at_most=1_000, doc="Maximum number of members in a share group."
    )
    group_share_min_assignment_interval_ms = option(
        "group.share.min.assignment.interval.ms",
        INT,
        0,
        at_least=0,
        doc="Smallest share.assignment.interval.ms that a group may have.",
    )
    group_share_min_delivery_count_limit = option(
        "group.share.min.delivery.count.limit",
        INT,
        2,
        at_least=2,
        at_most=5,
        doc="Smallest share.delivery.count.limit that a group may have.",
    )
    group_share_min_heartbeat_interval_ms = option(
        "group.share.min.heartbeat.interval.ms",
        INT,
        5_000,
        at_least=1,
        doc="Smallest share.heartbeat.interval.ms that a group may have.",
    )
    group_share_min_partition_max_record_locks = option(
        "group.share.min.partition.max.record.locks",
        INT,
        100,
        at_least=100,
        at_most=2_000,
        doc="Smallest share.partition.max.record.locks that a group may have.",
    )
    group_share_min_record_lock_duration_ms = option(
        "group.share.min.record.lock.duration.ms",
        INT,
        15_000,
        at_least=1_000,
        at_most=30_000,
        doc="Smallest share.record.lock.duration.ms that a group may have.",
    )
    group_share_min_session_timeout_ms = option(
        "group.share.min.session.timeout.ms",
        INT,
        45_000,
        at_least=1,
        doc="Smallest share.session.timeout.ms that a group may have.",
    )
    group_share_partition_max_record_locks = option(
        "group.share.partition.max.record.locks",
        INT,
        2_000,
        at_least=100,
        at_most=10_000,
        doc="Maximum number of records of a share partition that are acquired at the same time.",
    )
    group_share_persister_class_name = option(
        "group.share.persister.class.name",
        STRING,
        "org.apache.kafka.server.share.persister.DefaultStatePersister",
        internal=True,
        doc="Where the state of share partitions is stored: DefaultStatePersister uses the share coordinator, "
        "NoOpStatePersister stores nothing.",
    )
    group_share_record_lock_duration_ms = option(
        "group.share.record.lock.duration.ms",
        INT,
        30_000,
        at_least=1_000,
        at_most=3_600_000,
        doc="Time that an acquired record stays locked for its consumer.",
    )
    group_share_session_timeout_ms = option(
        "group.share.session.timeout.ms",
        INT,
        45_000,
        at_least=1,
        doc=("A member is removed after this time without a heartbeat."),
    )
    share_coordinator_append_linger_ms = option(
        "share.coordinator.append.linger.ms",
        INT,
        -1,
        at_least=-1,
        doc="Longest time that the share coordinator gathers records into one batch; -1 adapts it to the load.",
    )
    share_coordinator_cached_buffer_max_bytes = option(
        "share.coordinator.cached.buffer.max.bytes",
        INT,
        1_048_588,
        at_least=524_288,
        update=CLUSTER_WIDE,
        doc="Has no effect: each batch has its own buffer.",
    )
    share_coordinator_cold_partition_snapshot_interval_ms = option(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        INT,
        300_000,
        at_least=1,
        importance="low",
        internal=True,
        doc="A share partition gets a snapshot if it has had no update for this long.",
    )
    share_coordinator_load_buffer_size = option(
        "share.coordinator.load.buffer.size",
        INT,
        5_242_880,
        at_least=1,
        importance="high",
        doc="Has no effect: a coordinator loads its partition in pieces of 64 KiB, and serves clients between them.",
    )
    share_coordinator_snapshot_update_records_per_snapshot = option(
        "share.coordinator.snapshot.update.records.per.snapshot",
        INT,
        500,
        at_least=0,
        at_most=500,
        doc="Updates of a share partition between two snapshots.",
    )
    share_coordinator_state_topic_compression_codec = option(
        "share.coordinator.state.topic.compression.codec",
        INT,
        0,
        importance="high",
        doc="Codec of the share state topic: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    )
    share_coordinator_state_topic_min_isr = option(
        "share.coordinator.state.topic.min.isr",
        SHORT,
        2,
        at_least=1,
        importance="high",
        doc="min.insync.replicas of the share state topic.",
    )
    share_coordinator_state_topic_num_partitions = option(
        "share.coordinator.state.topic.num.partitions",
        INT,
        50,
        at_least=1,
        importance="high",
        doc="Number of partitions of the share state topic. Do not change it once the topic exists.",
    )
    share_coordinator_state_topic_prune_interval_ms = option(
        "share.coordinator.state.topic.prune.interval.ms",
        INT,
        300_000,
        at_least=1,
        importance="low",
        internal=True,
        doc="How often records that snapshots have made redundant are deleted from the share state topic.",
    )
    share_coordinator_state_topic_replication_factor = option(
        "share.coordinator.state.topic.replication.factor",
        SHORT,
        3,
        at_least=1,
        importance="high",
        doc="Replication factor of the share state topic; lower if there are fewer brokers.",
    )
    share_coordinator_state_topic_segment_bytes = option(
        "share.coordinator.state.topic.segment.bytes",
        INT,
        104_857_600,
        at_least=1,
        importance="high",
        doc="Size at which a segment of the share state topic rolls.",
    )
    share_coordinator_write_timeout_ms = option(
        "share.coordinator.write.timeout.ms",
        INT,
        5_000,
        at_least=1,
        importance="high",
        doc="Time after which a write of share state fails if its records are not replicated yet.",
    )
