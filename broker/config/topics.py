"""The broker's defaults for topic options, which apply to topics that don't set the option."""

from __future__ import annotations

from protocol.config import BOOLEAN, CLUSTER_WIDE, DOUBLE, INT, LIST, LONG, STRING, Config, option
from protocol.records.record import LARGEST_RECORD
from storage.config import COMPRESSION_TYPES, GZIP_LEVEL, MAX_LONG


class TopicDefaults(Config):
    """The broker's defaults for topic options, which apply to topics that don't set the option."""

    compression_type = option(
        STRING,
        "producer",
        "Codec of stored batches; producer keeps the producer's codec.",
        one_of=COMPRESSION_TYPES,
        importance="high",
        update=CLUSTER_WIDE,
    )
    compression_gzip_level = option(
        INT,
        -1,
        "Compression level if compression.type is gzip; -1 is zlib's default.",
        check=GZIP_LEVEL,
        update=CLUSTER_WIDE,
    )
    compression_lz4_level = option(
        INT, 9, "Compression level if compression.type is lz4.", at_least=1, at_most=17, update=CLUSTER_WIDE
    )
    compression_zstd_level = option(
        INT, 3, "Compression level if compression.type is zstd.", at_least=-131_072, at_most=22, update=CLUSTER_WIDE
    )
    log_cleaner_delete_retention_ms = option(
        LONG, 86_400_000, "Time that compacted topics retain tombstones.", at_least=0, update=CLUSTER_WIDE
    )
    log_cleaner_max_compaction_lag_ms = option(
        LONG, MAX_LONG, "Longest time before a record is compacted.", at_least=1, update=CLUSTER_WIDE
    )
    log_cleaner_min_cleanable_ratio = option(
        DOUBLE,
        0.5,
        "Share of a compacted log that must be uncleaned before the cleaner cleans it.",
        at_least=0,
        at_most=1,
        update=CLUSTER_WIDE,
    )
    log_cleaner_min_compaction_lag_ms = option(
        LONG, 0, "Time during which a new record is not compacted.", at_least=0, update=CLUSTER_WIDE
    )
    log_cleanup_policy = option(
        LIST,
        ("delete",),
        "delete removes old segments, compact keeps the newest record of each key; an empty list keeps everything.",
        one_of=("compact", "delete"),
        update=CLUSTER_WIDE,
    )
    log_flush_interval_messages = option(
        LONG,
        MAX_LONG,
        "Flush a log (fsync) after this many records.",
        at_least=1,
        importance="high",
        update=CLUSTER_WIDE,
    )
    log_flush_interval_ms = option(
        LONG,
        None,
        "Longest time before a record is flushed (fsync); log.flush.scheduler.interval.ms unless set.",
        importance="high",
        update=CLUSTER_WIDE,
        synonyms=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    )
    log_flush_scheduler_interval_ms = option(
        LONG, MAX_LONG, "How often the broker checks logs for records that are old enough to flush.", importance="high"
    )
    log_index_interval_bytes = option(
        INT, 4_096, "Bytes of records between two entries of an index.", at_least=0, update=CLUSTER_WIDE
    )
    log_index_size_max_bytes = option(
        INT, 10_485_760, "Largest size of an index file.", at_least=4, update=CLUSTER_WIDE
    )
    log_local_retention_bytes = option(
        LONG,
        -2,
        "With tiered storage, bytes of a partition that stay on local disk; -2 means log.retention.bytes.",
        at_least=-2,
        update=CLUSTER_WIDE,
    )
    log_local_retention_ms = option(
        LONG,
        -2,
        "With tiered storage, time that records stay on local disk; -2 means log.retention.ms.",
        at_least=-2,
        update=CLUSTER_WIDE,
    )
    odradek_records_check = option(
        BOOLEAN,
        True,
        "Decompress and validate every record that a producer sends before it is appended. Disable it only for "
        "topics whose producers are all trusted.",
        internal=True,
        update=CLUSTER_WIDE,
    )
    log_message_timestamp_after_max_ms = option(
        LONG,
        3_600_000,
        "Longest time that a record's CreateTime may be ahead of the broker's clock.",
        at_least=0,
        update=CLUSTER_WIDE,
    )
    log_message_timestamp_before_max_ms = option(
        LONG,
        MAX_LONG,
        "Longest time that a record's CreateTime may be behind the broker's clock.",
        at_least=0,
        update=CLUSTER_WIDE,
    )
    log_message_timestamp_type = option(
        STRING,
        "CreateTime",
        "Whether a record's timestamp is set by the producer (CreateTime) or at the append (LogAppendTime).",
        one_of=("CreateTime", "LogAppendTime"),
        update=CLUSTER_WIDE,
    )
    log_preallocate = option(
        BOOLEAN, False, "Reserve disk space for a segment when it is created.", update=CLUSTER_WIDE
    )
    log_remote_copy_lag_bytes = option(
        LONG,
        -1,
        "With tiered storage, bytes of a partition that are not copied to the remote tier yet (KIP-1241).",
        at_least=-1,
        update=CLUSTER_WIDE,
    )
    log_remote_copy_lag_ms = option(
        LONG,
        0,
        "With tiered storage, age from which segments are copied to the remote tier (KIP-1241).",
        at_least=-1,
        update=CLUSTER_WIDE,
    )
    log_retention_bytes = option(
        LONG,
        -1,
        "Size of a partition above which its oldest segments are deleted; -1 is no limit.",
        importance="high",
        update=CLUSTER_WIDE,
    )
    log_retention_hours = option(
        INT,
        168,
        "Age at which segments are deleted, if it is not set in minutes or milliseconds.",
        importance="high",
        synonyms=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    )
    log_retention_minutes = option(
        INT,
        None,
        "Age at which segments are deleted, if it is not set in milliseconds.",
        importance="high",
        synonyms=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    )
    log_retention_ms = option(
        LONG,
        None,
        "Age at which segments are deleted; -1 is no limit.",
        importance="high",
        update=CLUSTER_WIDE,
        synonyms=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    )
    log_roll_hours = option(
        INT,
        168,
        "Age at which a segment rolls, if it is not set in milliseconds.",
        at_least=1,
        importance="high",
        synonyms=("log.roll.ms", "log.roll.hours"),
    )
    log_roll_jitter_hours = option(
        INT,
        0,
        "Random time subtracted from the age at which a segment rolls, if it is not set in milliseconds.",
        at_least=0,
        importance="high",
        synonyms=("log.roll.jitter.ms", "log.roll.jitter.hours"),
    )
    log_roll_jitter_ms = option(
        LONG,
        None,
        "Longest random time subtracted from the age at which a segment rolls.",
        importance="high",
        update=CLUSTER_WIDE,
        synonyms=("log.roll.jitter.ms", "log.roll.jitter.hours"),
    )
    log_roll_ms = option(
        LONG,
        None,
        "Age at which a segment rolls.",
        importance="high",
        update=CLUSTER_WIDE,
        synonyms=("log.roll.ms", "log.roll.hours"),
    )
    log_segment_bytes = option(
        INT, 1_073_741_824, "Size at which a segment rolls.", at_least=1_048_576, importance="high", update=CLUSTER_WIDE
    )
    log_segment_delete_delay_ms = option(
        LONG,
        60_000,
        "Time between the deletion of a segment from its log and the removal of its files.",
        at_least=0,
        importance="high",
        update=CLUSTER_WIDE,
    )
    max_decompressed_message_bytes = option(
        INT,
        LARGEST_RECORD,
        "Largest record in a compressed batch, after decompression: checked in Produce, compaction, and ListOffsets by "
        "timestamp. The default is no limit.",
        at_least=1,
        at_most=LARGEST_RECORD,
        update=CLUSTER_WIDE,
    )
    message_max_bytes = option(
        INT,
        1_048_588,
        "Largest batch that is accepted, after compression.",
        at_least=0,
        importance="high",
        update=CLUSTER_WIDE,
    )
    min_insync_replicas = option(
        INT,
        1,
        "Number of in-sync replicas below which a produce with acks=all is rejected.",
        at_least=1,
        importance="high",
        update=CLUSTER_WIDE,
    )
    unclean_leader_election_enable = option(
        BOOLEAN,
        False,
        "Elect a replica that is not in sync if no in-sync replica is left.",
        importance="high",
        update=CLUSTER_WIDE,
    )
