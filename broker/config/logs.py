"""Maintenance of logs: recovery, checkpoints, retention, cleaning."""

from __future__ import annotations

import sys
from typing import Final

from protocol.config import BOOLEAN, CLUSTER_WIDE, DOUBLE, INT, LONG, Config, option

MAX_DOUBLE: Final = sys.float_info.max


class LogOptions(Config):
    """Maintenance of logs: recovery, checkpoints, retention, cleaning."""

    log_cleaner_enable = option("log.cleaner.enable", BOOLEAN, True, doc="Run the cleaner of compacted topics.")
    log_cleaner_threads = option(
        "log.cleaner.threads", INT, 1, at_least=0, update=CLUSTER_WIDE, doc="Threads that clean."
    )
    log_cleaner_backoff_ms = option(
        "log.cleaner.backoff.ms",
        LONG,
        15_000,
        at_least=0,
        update=CLUSTER_WIDE,
        doc="Time to sleep when nothing needs cleaning.",
    )
    log_cleaner_dedupe_buffer_size = option(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        134_217_728,
        update=CLUSTER_WIDE,
        doc="Bytes of memory for the offsets of keys, over all cleaner threads.",
    )
    log_cleaner_io_buffer_load_factor = option(
        "log.cleaner.io.buffer.load.factor",
        DOUBLE,
        0.9,
        update=CLUSTER_WIDE,
        doc="Share of the offset map that may be filled.",
    )
    log_cleaner_io_buffer_size = option(
        "log.cleaner.io.buffer.size",
        INT,
        524_288,
        at_least=0,
        update=CLUSTER_WIDE,
        doc="Bytes of memory for reading and writing, over all cleaner threads.",
    )
    log_cleaner_io_max_bytes_per_second = option(
        "log.cleaner.io.max.bytes.per.second",
        DOUBLE,
        MAX_DOUBLE,
        update=CLUSTER_WIDE,
        doc="Bytes per second that cleaning reads and writes.",
    )
    log_flush_offset_checkpoint_interval_ms = option(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        60_000,
        at_least=0,
        importance="high",
        doc="How often the recovery points are written, from which a crashed broker scans.",
    )
    log_flush_start_offset_checkpoint_interval_ms = option(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        60_000,
        at_least=0,
        importance="high",
        doc="How often the log start offsets are written.",
    )
    log_retention_check_interval_ms = option(
        "log.retention.check.interval.ms",
        LONG,
        300_000,
        at_least=1,
        doc="How often logs are looked at for segments to delete.",
    )
    log_initial_task_delay_ms = option(
        "log.initial.task.delay.ms",
        LONG,
        30_000,
        at_least=0,
        importance="low",
        internal=True,
        doc="Time from the start to the first such look.",
    )
    num_recovery_threads_per_data_dir = option(
        "num.recovery.threads.per.data.dir",
        INT,
        2,
        at_least=1,
        importance="high",
        update=CLUSTER_WIDE,
        doc="Threads per directory that recover logs at start and flush them at shutdown.",
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
        doc="A follower that was behind its leader for this long is no longer in sync.",
    )
    producer_id_expiration_ms = option(
        "producer.id.expiration.ms",
        INT,
        86_400_000,
        at_least=1,
        importance="low",
        update=CLUSTER_WIDE,
        doc="A producer id that has not written to a partition for this long is forgotten there.",
    )
    producer_id_expiration_check_interval_ms = option(
        "producer.id.expiration.check.interval.ms",
        INT,
        600_000,
        at_least=1,
        importance="low",
        internal=True,
        doc="How often expired producer ids are looked for.",
    )
