"""LogConfig: the options of a topic.

Names, types, defaults and bounds are those of Apache Kafka 4.3 (TopicConfig, LogConfig). A broker's own options change
the defaults; `synonyms` names the broker options behind a topic's option (ServerTopicConfigSynonyms).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from protocol.config import BOOLEAN, DOUBLE, INT, LIST, LONG, STRING, Check, Config, ConfigError, option

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

    cleanup_policy = option(
        "cleanup.policy",
        LIST,
        ("delete",),
        one_of=("compact", "delete"),
        synonyms=("log.cleanup.policy",),
        doc="delete drops old segments by retention.ms and retention.bytes; compact keeps the newest record of each "
        "key; both together do both, and an empty list keeps everything.",
    )
    compression_type = option(
        "compression.type",
        STRING,
        "producer",
        one_of=COMPRESSION_TYPES,
        synonyms=("compression.type",),
        doc="Codec of stored batches; producer keeps the producer's codec.",
    )
    compression_gzip_level = option(
        "compression.gzip.level",
        INT,
        -1,
        check=GZIP_LEVEL,
        synonyms=("compression.gzip.level",),
        doc="Compression level if compression.type is gzip; -1 is zlib's default.",
    )
    compression_lz4_level = option(
        "compression.lz4.level",
        INT,
        9,
        at_least=1,
        at_most=17,
        synonyms=("compression.lz4.level",),
        doc="Compression level if compression.type is lz4.",
    )
    compression_zstd_level = option(
        "compression.zstd.level",
        INT,
        3,
        at_least=-131072,
        at_most=22,
        synonyms=("compression.zstd.level",),
        doc="Compression level if compression.type is zstd.",
    )
    delete_retention_ms = option(
        "delete.retention.ms",
        LONG,
        DAY_MS,
        at_least=0,
        synonyms=("log.cleaner.delete.retention.ms",),
        doc="Time that a compacted topic retains tombstones. A consumer that starts at the beginning must finish "
        "within it to see every deletion.",
    )
    errors_deadletterqueue_group_enable = option(
        "errors.deadletterqueue.group.enable",
        BOOLEAN,
        False,
        internal=True,
        doc="Let share groups write records that they can't deliver to this topic (KIP-1191).",
    )
    file_delete_delay_ms = option(
        "file.delete.delay.ms",
        LONG,
        60_000,
        at_least=0,
        synonyms=("log.segment.delete.delay.ms",),
        doc="Time between removing a file from the log and deleting it from the disk.",
    )
    flush_messages = option(
        "flush.messages",
        LONG,
        MAX_LONG,
        at_least=1,
        synonyms=("log.flush.interval.messages",),
        doc="Flush a log (fsync) after this many records. The default leaves flushing to the operating system.",
    )
    flush_ms = option(
        "flush.ms",
        LONG,
        MAX_LONG,
        at_least=0,
        synonyms=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
        doc="Longest time before a record is flushed (fsync). The default leaves flushing to the operating system.",
    )
    follower_replication_throttled_replicas = option(
        "follower.replication.throttled.replicas",
        LIST,
        (),
        check=THROTTLED_REPLICAS,
        distinct=False,
        doc="Replicas that are throttled as followers, as partition:broker pairs, or * for all.",
    )
    index_interval_bytes = option(
        "index.interval.bytes",
        INT,
        4096,
        at_least=0,
        synonyms=("log.index.interval.bytes",),
        doc="Bytes of records between two entries of the offset and time indexes.",
    )
    internal_segment_bytes = option(
        "internal.segment.bytes", INT, None, internal=True, doc="Replaces segment.bytes, without its lower bound."
    )
    leader_replication_throttled_replicas = option(
        "leader.replication.throttled.replicas",
        LIST,
        (),
        check=THROTTLED_REPLICAS,
        distinct=False,
        doc="Replicas that are throttled as leaders, as partition:broker pairs, or * for all.",
    )
    local_retention_bytes = option(
        "local.retention.bytes",
        LONG,
        FROM_RETENTION,
        at_least=-2,
        synonyms=("log.local.retention.bytes",),
        doc="With tiered storage, bytes of a partition that stay on local disk; -2 means retention.bytes.",
    )
    local_retention_ms = option(
        "local.retention.ms",
        LONG,
        FROM_RETENTION,
        at_least=-2,
        synonyms=("log.local.retention.ms",),
        doc="With tiered storage, time that records stay on local disk; -2 means retention.ms.",
    )
    max_compaction_lag_ms = option(
        "max.compaction.lag.ms",
        LONG,
        MAX_LONG,
        at_least=1,
        synonyms=("log.cleaner.max.compaction.lag.ms",),
        doc="Longest time before a record is compacted.",
    )
    max_message_bytes = option(
        "max.message.bytes",
        INT,
        MAX_MESSAGE_BYTES,
        at_least=0,
        synonyms=("message.max.bytes",),
        doc="Largest batch that is accepted, after compression.",
    )
    message_timestamp_after_max_ms = option(
        "message.timestamp.after.max.ms",
        LONG,
        HOUR_MS,
        at_least=0,
        synonyms=("log.message.timestamp.after.max.ms",),
        doc="Longest time that a record's CreateTime may be ahead of the broker's clock.",
    )
    message_timestamp_before_max_ms = option(
        "message.timestamp.before.max.ms",
        LONG,
        MAX_LONG,
        at_least=0,
        synonyms=("log.message.timestamp.before.max.ms",),
        doc="Longest time that a record's CreateTime may be behind the broker's clock.",
    )
    message_timestamp_type = option(
        "message.timestamp.type",
        STRING,
        "CreateTime",
        one_of=("CreateTime", "LogAppendTime"),
        synonyms=("log.message.timestamp.type",),
        doc="Whether a record's timestamp is set by the producer (CreateTime) or at the append (LogAppendTime).",
    )
    min_cleanable_dirty_ratio = option(
        "min.cleanable.dirty.ratio",
        DOUBLE,
        0.5,
        at_least=0,
        at_most=1,
        synonyms=("log.cleaner.min.cleanable.ratio",),
        doc="Share of a compacted log that must be uncleaned before the log is cleaned.",
    )
    min_compaction_lag_ms = option(
        "min.compaction.lag.ms",
        LONG,
        0,
        at_least=0,
        synonyms=("log.cleaner.min.compaction.lag.ms",),
        doc="Time during which a new record is not compacted.",
    )
    min_insync_replicas = option(
        "min.insync.replicas",
        INT,
        1,
        at_least=1,
        synonyms=("min.insync.replicas",),
        doc="Minimum number of in-sync replicas, including the leader, for a produce with acks=all to succeed.",
    )
    odradek_records_check = option(
        "odradek.records.check",
        BOOLEAN,
        True,
        internal=True,
        synonyms=("odradek.records.check",),
        doc="Decompress and validate all records of a producer before the append. If it is off, the broker checks a "
        "batch's header and checksum, and checks records only if another option requires it. Disable it only for "
        "producers that never write records that consumers can't read.",
    )
    preallocate = option(
        "preallocate",
        BOOLEAN,
        False,
        synonyms=("log.preallocate",),
        doc="Reserve disk space for a segment when it is created.",
    )
    remote_log_copy_disable = option(
        "remote.log.copy.disable", BOOLEAN, False, doc="With tiered storage, stop copying segments to the remote tier."
    )
    remote_log_delete_on_disable = option(
        "remote.log.delete.on.disable",
        BOOLEAN,
        False,
        doc="Delete a topic's remote segments when it leaves tiered storage.",
    )
    remote_storage_enable = option("remote.storage.enable", BOOLEAN, False, doc="Keep older segments in a remote tier.")
    retention_bytes = option(
        "retention.bytes",
        LONG,
        -1,
        synonyms=("log.retention.bytes",),
        doc="Size of a partition above which its oldest segments are deleted; -1 is no limit.",
    )
    retention_ms = option(
        "retention.ms",
        LONG,
        WEEK_MS,
        at_least=-1,
        synonyms=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
        doc="Age at which segments are deleted; -1 is no limit.",
    )
    segment_bytes = option(
        "segment.bytes",
        INT,
        1 << 30,
        at_least=MIN_SEGMENT_BYTES,
        synonyms=("log.segment.bytes",),
        doc="Size at which a segment rolls. Retention and compaction work on whole segments.",
    )
    segment_index_bytes = option(
        "segment.index.bytes",
        INT,
        10 << 20,
        at_least=4,
        synonyms=("log.index.size.max.bytes",),
        doc="Largest size of an index file; a full index makes the segment roll.",
    )
    segment_jitter_ms = option(
        "segment.jitter.ms",
        LONG,
        0,
        at_least=0,
        synonyms=("log.roll.jitter.ms", "log.roll.jitter.hours"),
        doc="Largest random time subtracted from segment.ms, so that partitions do not all roll at the same time.",
    )
    segment_ms = option(
        "segment.ms",
        LONG,
        WEEK_MS,
        at_least=1,
        synonyms=("log.roll.ms", "log.roll.hours"),
        doc="Age at which a segment with records rolls, even if it is not full.",
    )
    unclean_leader_election_enable = option(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        synonyms=("unclean.leader.election.enable",),
        doc="Elect a replica that is not in sync if no in-sync replica is left. Records may be lost.",
    )

    def _derived(self) -> dict[str, object]:
        derived: dict[str, object] = {policy: policy in self.cleanup_policy for policy in ("compact", "delete")}
        if self.internal_segment_bytes is not None:
            derived["segment_bytes"] = self.internal_segment_bytes
        return derived

    @property
    def max_segment_ms(self) -> int:
        """The time after which a segment rolls. In a compacted log at most max.compaction.lag.ms, because the active
        segment can't be cleaned."""
        return min(self.max_compaction_lag_ms, self.segment_ms) if self.compact else self.segment_ms

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
