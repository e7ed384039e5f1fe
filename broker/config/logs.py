"""Options of log maintenance: recovery, checkpoints, retention, cleaning."""

from __future__ import annotations

import sys
from typing import Final

from protocol.config import BOOLEAN, CLUSTER_WIDE, DOUBLE, INT, LONG, Config, option

MAX_DOUBLE: Final = sys.float_info.max


class LogOptions(Config):
    """Options of log maintenance: recovery, checkpoints, retention, cleaning."""

    log_cleaner_enable = option(BOOLEAN, True, "Run the cleaner of compacted topics.")
    log_cleaner_threads = option(INT, 1, "Number of cleaner threads.", at_least=0, update=CLUSTER_WIDE)
    log_cleaner_backoff_ms = option(
        LONG, 15_000, "Time that the cleaner sleeps when no log needs cleaning.", at_least=0, update=CLUSTER_WIDE
    )
    log_cleaner_dedupe_buffer_size = option(
        LONG, 134_217_728, "Memory for the offset maps of all cleaner threads, in bytes.", update=CLUSTER_WIDE
    )
    log_cleaner_io_buffer_load_factor = option(
        DOUBLE, 0.9, "Share of the offset map that the cleaner may fill.", update=CLUSTER_WIDE
    )
    log_cleaner_io_buffer_size = option(
        INT,
        524_288,
        "Memory for the read and write buffers of all cleaner threads, in bytes.",
        at_least=0,
        update=CLUSTER_WIDE,
    )
    log_cleaner_io_max_bytes_per_second = option(
        DOUBLE, MAX_DOUBLE, "Limit on the bytes per second that the cleaner reads and writes.", update=CLUSTER_WIDE
    )
    log_flush_offset_checkpoint_interval_ms = option(
        INT,
        60_000,
        "How often recovery points are written. After a crash, recovery scans a log from its recovery point.",
        at_least=0,
        importance="high",
    )
    log_flush_start_offset_checkpoint_interval_ms = option(
        INT, 60_000, "How often log start offsets are written.", at_least=0, importance="high"
    )
    log_retention_check_interval_ms = option(
        LONG, 300_000, "How often the broker checks logs for segments to delete.", at_least=1
    )
    log_initial_task_delay_ms = option(
        LONG,
        30_000,
        "Time from the start to the first check for segments to delete.",
        at_least=0,
        importance="low",
        internal=True,
    )
    num_recovery_threads_per_data_dir = option(
        INT,
        2,
        "Threads per log directory that recover logs at start and flush them at shutdown.",
        at_least=1,
        importance="high",
        update=CLUSTER_WIDE,
    )
    replica_high_watermark_checkpoint_interval_ms = option(
        LONG, 5_000, "How often high watermarks are written.", importance="high"
    )
    replica_lag_time_max_ms = option(
        LONG,
        30_000,
        "A follower that has been behind its leader for this long is no longer in sync.",
        importance="high",
    )
    producer_id_expiration_ms = option(
        INT,
        86_400_000,
        "Time after which a partition forgets a producer id that has not written to it.",
        at_least=1,
        importance="low",
        update=CLUSTER_WIDE,
    )
    producer_id_expiration_check_interval_ms = option(
        INT,
        600_000,
        "How often the broker checks for expired producer ids.",
        at_least=1,
        importance="low",
        internal=True,
    )
