"""LogConfig: the options of a topic.

Names, types, defaults and bounds are those of Apache Kafka 4.3 (TopicConfig, LogConfig). A broker's own options change
the defaults; `synonyms` names the broker options behind a topic's option (ServerTopicConfigSynonyms).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from protocol.config import BOOLEAN, DOUBLE, INT, LIST, LONG, STRING, Check, Config, ConfigError, option
from protocol.records.record import LARGEST_RECORD

MAX_LONG: Final = (1 << 63) - 1
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
WEEK_MS: Final = 7 * DAY_MS
FROM_RETENTION: Final = -2  # local.retention.* takes the value of retention.*

COMPRESSION_TYPES: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
MIN_SEGMENT_BYTES: Final = 1 << 20  # KIP-1030: smaller segments exhaust file handles and mappings
MAX_MESSAGE_BYTES: Final = (1 << 20) + 12  # 12 bytes of offset and length, then 1 MiB
REPLICAS_FORMAT: Final = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."


def _gzip_level(_name: str, value: object) -> str | None:
    fits = isinstance(value, int) and (value == -1 or 1 <= value <= 9)
    return None if fits else "Value must be between 1 and 9 or equal to -1"


def _throttled_replicas(name: str, value: object) -> str | None:
    assert isinstance(value, tuple)
    if value in ((), ("*",)) or all(_is_pair(entry) for entry in value):
        return None
    return f"{name} must be the literal '*' or a list of replicas in the following format: {REPLICAS_FORMAT}"


def _is_pair(entry: str) -> bool:
    partition, colon, broker = entry.partition(":")
    return bool(colon) and partition.isdecimal() and broker.isdecimal()


GZIP_LEVEL: Final = Check("[1,...,9] or -1", _gzip_level)
THROTTLED_REPLICAS: Final = Check(REPLICAS_FORMAT, _throttled_replicas)


class LogConfig(Config):
    """The options of a topic's logs. `LogConfig()` has Kafka's defaults; `parse` reads texts under Kafka's names."""

    KIND: ClassVar[str] = "topic"

    # Options that Kafka 4.3 does not have are internal: DescribeConfigs returns them only if they are set.

    compact: bool
    """True if cleanup.policy contains compact."""
    delete: bool
    """True if cleanup.policy contains delete."""
    max_segment_ms: int
    """The time after which a segment rolls. In a compacted log at most max.compaction.lag.ms, because the active
    segment can't be cleaned."""

    cleanup_policy = option(
        LIST,
        ("delete",),
        "delete drops old segments by retention.ms and retention.bytes; compact keeps the newest record of each "
        "key; both together do both, and an empty list keeps everything.",
        one_of=("compact", "delete"),
        synonyms=("log.cleanup.policy",),
    )
    compression_type = option(
        STRING,
        "producer",
        "Codec of stored batches; producer keeps the producer's codec.",
        one_of=COMPRESSION_TYPES,
        synonyms=("compression.type",),
    )
    compression_gzip_level = option(
        INT,
        -1,
        "Compression level if compression.type is gzip; -1 is zlib's default.",
        check=GZIP_LEVEL,
        synonyms=("compression.gzip.level",),
    )
    compression_lz4_level = option(
        INT,
        9,
        "Compression level if compression.type is lz4.",
        at_least=1,
        at_most=17,
        synonyms=("compression.lz4.level",),
    )
    compression_zstd_level = option(
        INT,
        3,
        "Compression level if compression.type is zstd.",
        at_least=-131072,
        at_most=22,
        synonyms=("compression.zstd.level",),
    )
    delete_retention_ms = option(
        LONG,
        DAY_MS,
        "Time that a compacted topic retains tombstones. A consumer that starts at the beginning must finish "
        "within it to see every deletion.",
        at_least=0,
        synonyms=("log.cleaner.delete.retention.ms",),
    )
    errors_deadletterqueue_group_enable = option(
        BOOLEAN,
        False,
        "Let share groups write records that they can't deliver to this topic (KIP-1191).",
    )
    file_delete_delay_ms = option(
        LONG,
        60_000,
        "Time between removing a file from the log and deleting it from the disk.",
        at_least=0,
        synonyms=("log.segment.delete.delay.ms",),
    )
    flush_messages = option(
        LONG,
        MAX_LONG,
        "Flush a log (fsync) after this many records. The default leaves flushing to the operating system.",
        at_least=1,
        synonyms=("log.flush.interval.messages",),
    )
    flush_ms = option(
        LONG,
        MAX_LONG,
        "Longest time before a record is flushed (fsync). The default leaves flushing to the operating system.",
        at_least=0,
        synonyms=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    )
    follower_replication_throttled_replicas = option(
        LIST,
        (),
        "Replicas that are throttled as followers, as partition:broker pairs, or * for all.",
        check=THROTTLED_REPLICAS,
        distinct=False,
    )
    index_interval_bytes = option(
        INT,
        4096,
        "Bytes of records between two entries of the offset and time indexes.",
        at_least=0,
        synonyms=("log.index.interval.bytes",),
    )
    internal_segment_bytes = option(INT, None, "Replaces segment.bytes, without its lower bound.", internal=True)
    leader_replication_throttled_replicas = option(
        LIST,
        (),
        "Replicas that are throttled as leaders, as partition:broker pairs, or * for all.",
        check=THROTTLED_REPLICAS,
        distinct=False,
    )
    local_retention_bytes = option(
        LONG,
        FROM_RETENTION,
        "With tiered storage, bytes of a partition that stay on local disk; -2 means retention.bytes.",
        at_least=-2,
        synonyms=("log.local.retention.bytes",),
    )
    local_retention_ms = option(
        LONG,
        FROM_RETENTION,
        "With tiered storage, time that records stay on local disk; -2 means retention.ms.",
        at_least=-2,
        synonyms=("log.local.retention.ms",),
    )
    max_compaction_lag_ms = option(
        LONG,
        MAX_LONG,
        "Longest time before a record is compacted.",
        at_least=1,
        synonyms=("log.cleaner.max.compaction.lag.ms",),
    )
    max_decompressed_message_bytes = option(
        INT,
        LARGEST_RECORD,
        "Largest record in a compressed batch, after decompression: checked in Produce, compaction, and ListOffsets by "
        "timestamp. The default is no limit.",
        at_least=1,
        at_most=LARGEST_RECORD,
        synonyms=("max.decompressed.message.bytes",),
    )
    max_message_bytes = option(
        INT,
        MAX_MESSAGE_BYTES,
        "Largest batch that is accepted, after compression.",
        at_least=0,
        synonyms=("message.max.bytes",),
    )
    message_timestamp_after_max_ms = option(
        LONG,
        HOUR_MS,
        "Longest time that a record's CreateTime may be ahead of the broker's clock.",
        at_least=0,
        synonyms=("log.message.timestamp.after.max.ms",),
    )
    message_timestamp_before_max_ms = option(
        LONG,
        MAX_LONG,
        "Longest time that a record's CreateTime may be behind the broker's clock.",
        at_least=0,
        synonyms=("log.message.timestamp.before.max.ms",),
    )
    message_timestamp_type = option(
        STRING,
        "CreateTime",
        "Whether a record's timestamp is set by the producer (CreateTime) or at the append (LogAppendTime).",
        one_of=("CreateTime", "LogAppendTime"),
        synonyms=("log.message.timestamp.type",),
    )
    min_cleanable_dirty_ratio = option(
        DOUBLE,
        0.5,
        "Share of a compacted log that must be uncleaned before the log is cleaned.",
        at_least=0,
        at_most=1,
        synonyms=("log.cleaner.min.cleanable.ratio",),
    )
    min_compaction_lag_ms = option(
        LONG,
        0,
        "Time during which a new record is not compacted.",
        at_least=0,
        synonyms=("log.cleaner.min.compaction.lag.ms",),
    )
    min_insync_replicas = option(
        INT,
        1,
        "Minimum number of in-sync replicas, including the leader, for a produce with acks=all to succeed.",
        at_least=1,
        synonyms=("min.insync.replicas",),
    )
    odradek_records_check = option(
        BOOLEAN,
        True,
        "Decompress and validate all records of a producer before the append. If it is off, the broker checks a "
        "batch's header and checksum, and checks records only if another option requires it. Disable it only for "
        "producers that never write records that consumers can't read.",
        internal=True,
        synonyms=("odradek.records.check",),
    )
    preallocate = option(
        BOOLEAN, False, "Reserve disk space for a segment when it is created.", synonyms=("log.preallocate",)
    )
    remote_copy_lag_bytes = option(
        LONG,
        -1,
        "With tiered storage, bytes of a partition that are not copied to the remote tier yet (KIP-1241).",
        at_least=-1,
        synonyms=("log.remote.copy.lag.bytes",),
    )
    remote_copy_lag_ms = option(
        LONG,
        0,
        "With tiered storage, age from which segments are copied to the remote tier (KIP-1241).",
        at_least=-1,
        synonyms=("log.remote.copy.lag.ms",),
    )
    remote_log_copy_disable = option(BOOLEAN, False, "With tiered storage, stop copying segments to the remote tier.")
    remote_log_delete_on_disable = option(
        BOOLEAN, False, "Delete a topic's remote segments when it leaves tiered storage."
    )
    remote_storage_enable = option(BOOLEAN, False, "Keep older segments in a remote tier.")
    retention_bytes = option(
        LONG,
        -1,
        "Size of a partition above which its oldest segments are deleted; -1 is no limit.",
        synonyms=("log.retention.bytes",),
    )
    retention_ms = option(
        LONG,
        WEEK_MS,
        "Age at which segments are deleted; -1 is no limit.",
        at_least=-1,
        synonyms=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    )
    segment_bytes = option(
        INT,
        1 << 30,
        "Size at which a segment rolls. Retention and compaction work on whole segments.",
        at_least=MIN_SEGMENT_BYTES,
        synonyms=("log.segment.bytes",),
    )
    segment_index_bytes = option(
        INT,
        10 << 20,
        "Largest size of an index file; a full index makes the segment roll.",
        at_least=4,
        synonyms=("log.index.size.max.bytes",),
    )
    segment_jitter_ms = option(
        LONG,
        0,
        "Largest random time subtracted from segment.ms, so that partitions do not all roll at the same time.",
        at_least=0,
        synonyms=("log.roll.jitter.ms", "log.roll.jitter.hours"),
    )
    segment_ms = option(
        LONG,
        WEEK_MS,
        "Age at which a segment with records rolls, even if it is not full.",
        at_least=1,
        synonyms=("log.roll.ms", "log.roll.hours"),
    )
    unclean_leader_election_enable = option(
        BOOLEAN,
        False,
        "Elect a replica that is not in sync if no in-sync replica is left. Records may be lost.",
        synonyms=("unclean.leader.election.enable",),
    )

    def _derived(self) -> dict[str, object]:
        derived: dict[str, object] = {policy: policy in self.cleanup_policy for policy in ("compact", "delete")}
        if self.internal_segment_bytes is not None:
            derived["segment_bytes"] = self.internal_segment_bytes
        limit_ms = self.max_compaction_lag_ms if derived["compact"] else self.segment_ms
        derived["max_segment_ms"] = min(limit_ms, self.segment_ms)
        return derived

    def contradictions(self) -> Iterable[ConfigError]:
        """Yields the errors of compaction lags that contradict each other, and of tiered storage, which the broker
        doesn't support (LogConfig.validateValues)."""
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            yield ConfigError(
                f"conflict topic config setting min.compaction.lag.ms ({self.min_compaction_lag_ms})"
                f" > max.compaction.lag.ms ({self.max_compaction_lag_ms})"
            )
        if self.remote_storage_enable:
            yield ConfigError(
                "Tiered Storage functionality is disabled in the broker. "
                "Topic cannot be configured with remote log storage."
            )
