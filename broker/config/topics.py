"""The broker's defaults for topic options, which apply to topics that don't set the option."""

from __future__ import annotations

from protocol.config import BOOLEAN, CLUSTER_WIDE, DOUBLE, INT, LIST, LONG, STRING, Config, option
from storage.config import COMPRESSION_TYPES, GZIP_LEVEL, MAX_LONG


class TopicDefaults(Config):
    """The broker's defaults for topic options, which apply to topics that don't set the option."""

    compression_type = option(
        "compression.type",
        STRING,
        "producer",
        one_of=COMPRESSION_TYPES,
        importance="high",
        update=CLUSTER_WIDE,
        doc="Codec of stored batches; producer keeps the producer's codec.",
    )
    compression_gzip_level = option(
        "compression.gzip.level",
        INT,
        -1,
        check=GZIP_LEVEL,
        update=CLUSTER_WIDE,
        doc="Compression level if compression.type is gzip; -1 is zlib's default.",
    )
    compression_lz4_level = option(
        "compression.lz4.level",
        INT,
        9,
        at_least=1,
        at_most=17,
        update=CLUSTER_WIDE,
        doc="Compression level if compression.type is lz4.",
    )
    compression_zstd_level = option(
        "compression.zstd.level",
        INT,
        3,
        at_least=-131_072,
        at_most=22,
        update=CLUSTER_WIDE,
        doc="Compression level if compression.type is zstd.",
    )
    log_cleaner_delete_retention_ms = option(
        "log.cleaner.delete.retention.ms",
        LONG,
        86_400_000,
        at_least=0,
        update=CLUSTER_WIDE,
        doc="Time that compacted topics retain tombstones.",
    )
    log_cleaner_max_compaction_lag_ms = option(
        "log.cleaner.max.compaction.lag.ms",
        LONG,
        MAX_LONG,
        at_least=1,
        update=CLUSTER_WIDE,
        doc="Longest time before a record is compacted.",
    )
    log_cleaner_min_cleanable_ratio = option(
        "log.cleaner.min.cleanable.ratio",
        DOUBLE,
        0.5,
        at_least=0,
        at_most=1,
        update=CLUSTER_WIDE,
        doc="Share of a compacted log that must be uncleaned before the cleaner cleans it.",
    )
    log_cleaner_min_compaction_lag_ms = option(
        "log.cleaner.min.compaction.lag.ms",
        LONG,
        0,
        at_least=0,
        update=CLUSTER_WIDE,
        doc="Time during which a new record is not compacted.",
    )
    log_cleanup_policy = option(
        "log.cleanup.policy",
        LIST,
        ("delete",),
        one_of=("compact", "delete"),
        update=CLUSTER_WIDE,
        doc="delete removes old segments, compact keeps the newest record of each key; an empty list keeps everything.",
    )
    log_flush_interval_messages = option(
        "log.flush.interval.messages",
        LONG,
        MAX_LONG,
        at_least=1,
        importance="high",
        update=CLUSTER_WIDE,
        doc="Flush a log (fsync) after this many records.",
    )
    log_flush_interval_ms = option(
        "log.flush.interval.ms",
        LONG,
        None,
        importance="high",
        update=CLUSTER_WIDE,
        synonyms=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
        doc="Longest time before a record is flushed (fsync); log.flush.scheduler.interval.ms unless set.",
    )
    log_flush_scheduler_interval_ms = option(
        "log.flush.scheduler.interval.ms",
        LONG,
        MAX_LONG,
        importance="high",
        doc="How often the broker checks logs for records that are old enough to flush.",
    )
    log_index_interval_bytes = option(
        "log.index.interval.bytes",
        INT,
        4_096,
        at_least=0,
        update=CLUSTER_WIDE,
        doc="Bytes of records between two entries of an index.",
    )
    log_index_size_max_bytes = option(
        "log.index.size.max.bytes",
        INT,
        10_485_760,
        at_least=4,
        update=CLUSTER_WIDE,
        doc="Largest size of an index file.",
    )
    log_local_retention_bytes = option(
        "log.local.retention.bytes",
        LONG,
        -2,
        at_least=-2,
        update=CLUSTER_WIDE,
        doc="With tiered storage, bytes of a partition that stay on local disk; -2 means log.retention.bytes.",
    )
    log_local_retention_ms = option(
        "log.local.retention.ms",
        LONG,
        -2,
        at_least=-2,
        update=CLUSTER_WIDE,
        doc="With tiered storage, time that records stay on local disk; -2 means log.retention.ms.",
    )
    odradek_records_check = option(
        "odradek.records.check",
        BOOLEAN,
        True,
        internal=True,
        update=CLUSTER_WIDE,
        doc="Decompress and validate every record that a producer sends before it is appended. Disable it only for "
        "topics whose producers are all trusted.",
    )
    log_message_timestamp_after_max_ms = option(
        "log.message.timestamp.after.max.ms",
        LONG,
        3_600_000,
        at_least=0,
        update=CLUSTER_WIDE,
        doc="Longest time that a record's CreateTime may be ahead of the broker's clock.",
    )
    log_message_timestamp_before_max_ms = option(
        "log.message.timestamp.before.max.ms",
        LONG,
        MAX_LONG,
        at_least=0,
        update=CLUSTER_WIDE,
        doc="Longest time that a record's CreateTime may be behind the broker's clock.",
    )
    log_message_timestamp_type = option(
        "log.message.timestamp.type",
        STRING,
        "CreateTime",
        one_of=("CreateTime", "LogAppendTime"),
        update=CLUSTER_WIDE,
        doc="Whether a record's timestamp is set by the producer (CreateTime) or at the append (LogAppendTime).",
    )
    log_preallocate = option(
        "log.preallocate",
        BOOLEAN,
        False,
        update=CLUSTER_WIDE,
        doc=("Reserve disk space for a segment when it is created."),
    )
    log_retention_bytes = option(
        "log.retention.bytes",
        LONG,
        -1,
        importance="high",
        update=CLUSTER_WIDE,
        doc="Size of a partition above which its oldest segments are deleted; -1 is no limit.",
    )
    log_retention_hours = option(
        "log.retention.hours",
        INT,
        168,
        importance="high",
        synonyms=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
        doc="Age at which segments are deleted, if it is not set in minutes or milliseconds.",
    )
    log_retention_minutes = option(
        "log.retention.minutes",
        INT,
        None,
        importance="high",
        synonyms=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
        doc="Age at which segments are deleted, if it is not set in milliseconds.",
    )
    log_retention_ms = option(
        "log.retention.ms",
        LONG,
        None,
        importance="high",
        update=CLUSTER_WIDE,
        synonyms=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
        doc="Age at which segments are deleted; -1 is no limit.",
    )
    log_roll_hours = option(
        "log.roll.hours",
        INT,
        168,
        at_least=1,
        importance="high",
        synonyms=("log.roll.ms", "log.roll.hours"),
        doc="Age at which a segment rolls, if it is not set in milliseconds.",
    )
    log_roll_jitter_hours = option(
        "log.roll.jitter.hours",
        INT,
        0,
        at_least=0,
        importance="high",
        synonyms=("log.roll.jitter.ms", "log.roll.jitter.hours"),
        doc="Random time subtracted from the age at which a segment rolls, if it is not set in milliseconds.",
    )
    log_roll_jitter_ms = option(
        "log.roll.jitter.ms",
        LONG,
        None,
        importance="high",
        update=CLUSTER_WIDE,
        synonyms=("log.roll.jitter.ms", "log.roll.jitter.hours"),
        doc="Longest random time subtracted from the age at which a segment rolls.",
    )
    log_roll_ms = option(
        "log.roll.ms",
        LONG,
        None,
        importance="high",
        update=CLUSTER_WIDE,
        synonyms=("log.roll.ms", "log.roll.hours"),
        doc="Age at which a segment rolls.",
    )
    log_segment_bytes = option(
        "log.segment.bytes",
        INT,
        1_073_741_824,
        at_least=1_048_576,
        importance="high",
        update=CLUSTER_WIDE,
        doc="Size at which a segment rolls.",
    )
    log_segment_delete_delay_ms = option(
        "log.segment.delete.delay.ms",
        LONG,
        60_000,
        at_least=0,
        importance="high",
        update=CLUSTER_WIDE,
        doc="Time between the deletion of a segment from its log and the removal of its files.",
    )
    message_max_bytes = option(
        "message.max.bytes",
        INT,
        1_048_588,
        at_least=0,
        importance="high",
        update=CLUSTER_WIDE,
        doc="Largest batch that is accepted, after compression.",
    )
    min_insync_replicas = option(
        "min.insync.replicas",
        INT,
        1,
        at_least=1,
        importance="high",
        update=CLUSTER_WIDE,
        doc="Number of in-sync replicas below which a produce with acks=all is rejected.",
    )
    unclean_leader_election_enable = option(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        importance="high",
        update=CLUSTER_WIDE,
        doc="Elect a replica that is not in sync if no in-sync replica is left.",
    )
