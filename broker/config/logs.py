"""Options of log maintenance: recovery, checkpoints, retention, cleaning."""

from __future__ import annotations

import sys
from typing import Final

from protocol.config import BOOLEAN, CLUSTER_WIDE, DOUBLE, INT, LONG, Config, option

MAX_DOUBLE: Final = sys.float_info.max


class LogOptions(Config):
    """Options of log maintenance: recovery, checkpoints, retention, cleaning."""

    log_cleaner_enable = option("log.cleaner.enable", BOOLEAN, True, doc="Run the cleaner of compacted topics.")
    log_cleaner_threads = option(
        "log.cleaner.threads", INT, 1, at_least=0, update=CLUSTER_WIDE, doc="Number of cleaner threads."
    )
    log_cleaner_backoff_ms = option(
        "log.cleaner.backoff.ms",
        LONG,
        15_000,
        at_least=0,
        update=CLUSTER_WIDE,
        doc="Time that the cleaner sleeps when no log needs cleaning.",
    )
    log_cleaner_dedupe_buffer_size = option(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        134_217_728,
        update=CLUSTER_WIDE,
        doc="Memory for the offset maps of all cleaner threads, in bytes.",
    )
    log_cleaner_io_buffer_load_factor = option(
        "log.cleaner.io.buffer.load.factor",
        DOUBLE,
        0.9,
        update=CLUSTER_WIDE,
        doc="Share of the offset map that the cleaner may fill.",
    )
    log_cleaner_io_buffer_size = option(
        "log.cleaner.io.buffer.size",
        INT,
        524_288,
        at_least=0,
        update=CLUSTER_WIDE,
        doc="Memory for the read and write buffers of all cleaner threads, in bytes.",
    )
    log_cleaner_io_max_bytes_per_second = option(
        "log.cleaner.io.max.bytes.per.second",
        DOUBLE,
        MAX_DOUBLE,
        update=CLUSTER_WIDE,
        doc="Limit on the bytes per second that the cleaner reads and writes.",
    )
    log_flush_offset_checkpoint_interval_ms = option(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        60_000,
        at_least=0,
        importance="high",
        doc="How often recovery points are written. After a crash, recovery scans a log from its recovery point.",
    )
    log_flush_start_offset_checkpoint_interval_ms = option(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        60_000,
        at_least=0,
        importance="high",
        doc="How often log start offsets are written.",
    )
    log_retention_check_interval_ms = option(
        "log.retention.check.interval.ms",
        LONG,
        300_000,
        at_least=1,
        doc="How often the broker checks logs for segments to delete.",
    )
    log_initial_task_delay_ms = option(
        "log.initial.task.delay.ms",
        LONG,
        30_000,
        at_least=0,
        importance="low",
        internal=True,
        doc="Time from the start to the first check for segments to delete.",
    )
    num_recovery_threads_per_data_dir = option(
        "num.recovery.threads.per.data.dir",
        INT,
        2,
        at_least=1,
        importance="high",
        update=CLUSTER_WIDE,
        doc="Threads per log directory that recover logs at start and flush them at shutdown.",
    )
    replica_high_watermark_checkpoint_interval_ms = option(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        5_000,
        importance="high",
        doc="How often high watermarks are written.",
    )
    replica_lag_time_max_ms = option(
        "replica.lag.time.max.ms",
        LONG,
        30_000,
        importance="high",
        doc="A follower that has been behind its leader for this long is no longer in sync.",
    )
    producer_id_expiration_ms = option(
        "producer.id.expiration.ms",
        INT,
        86_400_000,
        at_least=1,
        importance="low",
        update=CLUSTER_WIDE,
        doc="Time after which a partition forgets a producer id that has not written to it.",
    )
    producer_id_expiration_check_interval_ms = option(
        "producer.id.expiration.check.interval.ms",
        INT,
        600_000,
        at_least=1,
        importance="low",
        internal=True,
        doc="How often the broker checks for expired producer ids.",
    )
