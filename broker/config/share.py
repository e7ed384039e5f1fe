"""Share groups (KIP-932) and the coordinator of their state."""

from __future__ import annotations

from protocol.config import BOOLEAN, CLUSTER_WIDE, INT, LIST, SHORT, STRING, Config, option


class ShareOptions(Config):
    """Share groups (KIP-932) and the coordinator of their state."""

    errors_deadletterqueue_auto_create_topics_enable = option(
        BOOLEAN,
        False,
        "Create the dead-letter queue topic of a share group if it does not exist (KIP-1191).",
        update=CLUSTER_WIDE,
    )
    errors_deadletterqueue_topic_name_prefix = option(
        STRING,
        "dlq.",
        "Required prefix of the name of a dead-letter queue topic (KIP-1191).",
        update=CLUSTER_WIDE,
    )
    group_share_assignment_interval_ms = option(
        INT, 1_000, "Shortest time between two computed assignments of a group.", at_least=0, update=CLUSTER_WIDE
    )
    group_share_assignor_offload_enable = option(
        BOOLEAN,
        True,
        "Has no effect: the broker decides where an assignor runs.",
        update=CLUSTER_WIDE,
        internal=True,
    )
    group_share_assignors = option(LIST, ("simple",), "Server-side assignors.", may_be_empty=False)
    group_share_delivery_count_limit = option(
        INT, 5, "Number of deliveries after which a record is archived.", at_least=2, at_most=10
    )
    group_share_heartbeat_interval_ms = option(INT, 5_000, "Interval between two heartbeats of a member.", at_least=1)
    group_share_initialize_retry_interval_ms = option(
        INT,
        30_000,
        "Interval after which the initialisation of share partitions is retried.",
        at_least=1,
        importance="low",
        internal=True,
    )
    group_share_max_assignment_interval_ms = option(
        INT, 15_000, "Largest share.assignment.interval.ms that a group may have.", at_least=0
    )
    group_share_max_delivery_count_limit = option(
        INT, 10, "Largest share.delivery.count.limit that a group may have.", at_least=5, at_most=25
    )
    group_share_max_heartbeat_interval_ms = option(
        INT, 15_000, "Largest share.heartbeat.interval.ms that a group may have.", at_least=1
    )
    group_share_max_partition_max_record_locks = option(
        INT, 4_000, "Largest share.partition.max.record.locks that a group may have.", at_least=2_000, at_most=10_000
    )
    group_share_max_record_lock_duration_ms = option(
        INT, 60_000, "Largest share.record.lock.duration.ms that a group may have.", at_least=30_000, at_most=3_600_000
    )
    group_share_max_session_timeout_ms = option(
        INT, 60_000, "Largest share.session.timeout.ms that a group may have.", at_least=1
    )
    group_share_max_share_sessions = option(INT, 2_000, "Maximum number of share sessions of the broker.", at_least=1)
    group_share_max_size = option(INT, 200, "Maximum number of members in a share group.", at_least=1, at_most=1_000)
    group_share_min_assignment_interval_ms = option(
        INT, 0, "Smallest share.assignment.interval.ms that a group may have.", at_least=0
    )
    group_share_min_delivery_count_limit = option(
        INT, 2, "Smallest share.delivery.count.limit that a group may have.", at_least=2, at_most=5
    )
    group_share_min_heartbeat_interval_ms = option(
        INT, 5_000, "Smallest share.heartbeat.interval.ms that a group may have.", at_least=1
    )
    group_share_min_partition_max_record_locks = option(
        INT, 100, "Smallest share.partition.max.record.locks that a group may have.", at_least=100, at_most=2_000
    )
    group_share_min_record_lock_duration_ms = option(
        INT, 15_000, "Smallest share.record.lock.duration.ms that a group may have.", at_least=1_000, at_most=30_000
    )
    group_share_min_session_timeout_ms = option(
        INT, 45_000, "Smallest share.session.timeout.ms that a group may have.", at_least=1
    )
    group_share_partition_max_record_locks = option(
        INT,
        2_000,
        "Maximum number of records of a share partition that are acquired at the same time.",
        at_least=100,
        at_most=10_000,
    )
    group_share_persister_class_name = option(
        STRING,
        "org.apache.kafka.server.share.persister.DefaultStatePersister",
        "Where the state of share partitions is stored: DefaultStatePersister uses the share coordinator, "
        "NoOpStatePersister stores nothing.",
        internal=True,
    )
    group_share_record_lock_duration_ms = option(
        INT, 30_000, "Time that an acquired record stays locked for its consumer.", at_least=1_000, at_most=3_600_000
    )
    group_share_session_timeout_ms = option(
        INT, 45_000, "A member is removed after this time without a heartbeat.", at_least=1
    )
    share_coordinator_append_linger_ms = option(
        INT,
        -1,
        "Longest time that the share coordinator gathers records into one batch; -1 adapts it to the load.",
        at_least=-1,
    )
    share_coordinator_cached_buffer_max_bytes = option(
        INT, 1_048_588, "Has no effect: each batch has its own buffer.", at_least=524_288, update=CLUSTER_WIDE
    )
    share_coordinator_cold_partition_snapshot_interval_ms = option(
        INT,
        300_000,
        "A share partition gets a snapshot if it has had no update for this long.",
        at_least=1,
        importance="low",
        internal=True,
    )
    share_coordinator_load_buffer_size = option(
        INT,
        5_242_880,
        "Has no effect: a coordinator loads its partition in pieces of 64 KiB, and serves clients between them.",
        at_least=1,
        importance="high",
    )
    share_coordinator_snapshot_update_records_per_snapshot = option(
        INT, 500, "Updates of a share partition between two snapshots.", at_least=0, at_most=500
    )
    share_coordinator_state_topic_compression_codec = option(
        INT, 0, "Codec of the share state topic: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.", importance="high"
    )
    share_coordinator_state_topic_min_isr = option(
        SHORT, 2, "min.insync.replicas of the share state topic.", at_least=1, importance="high"
    )
    share_coordinator_state_topic_num_partitions = option(
        INT,
        50,
        "Number of partitions of the share state topic. Do not change it once the topic exists.",
        at_least=1,
        importance="high",
    )
    share_coordinator_state_topic_prune_interval_ms = option(
        INT,
        300_000,
        "How often records that snapshots have made redundant are deleted from the share state topic.",
        at_least=1,
        importance="low",
        internal=True,
    )
    share_coordinator_state_topic_replication_factor = option(
        SHORT,
        3,
        "Replication factor of the share state topic; lower if there are fewer brokers.",
        at_least=1,
        importance="high",
    )
    share_coordinator_state_topic_segment_bytes = option(
        INT, 104_857_600, "Size at which a segment of the share state topic rolls.", at_least=1, importance="high"
    )
    share_coordinator_write_timeout_ms = option(
        INT,
        5_000,
        "Time after which a write of share state fails if its records are not replicated yet.",
        at_least=1,
        importance="high",
    )
