"""Opens the logs in the log directories, and logs the records that recovery had to cut."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType

from broker.clock import Clock, SystemClock
from broker.config import BrokerConfig
from broker.logging import get_logger
from coordinator.cluster.image import Image
from protocol.errors import ErrorCode, KafkaError
from storage.config import LogConfig
from storage.disk import Disk
from storage.log import Log
from storage.logs import Logs

NAME_BYTES = 16
"""Random bytes in the name of a deleted log's directory, as many as in Kafka's UUID."""

TELL_EVERY_MS = 2_000
"""Time between two lines of progress; a faster start logs none."""

LISTED_SEGMENTS = 5
"""Maximum number of a partition's segments with rebuilt indexes that a line names."""

NONE_FAILED: Mapping[str, Exception] = MappingProxyType({})

logger = get_logger(__name__)


def open_logs(
    config: BrokerConfig, image: Image, disk: Disk, now_ms: int, failed: Mapping[str, Exception] = NONE_FAILED
) -> Logs:
    """Opens all logs except those in directories that have failed already. Raises KafkaError if no directory can be
    used."""
    logs = Logs(
        config.data_dirs,
        disk=disk,
        unique=lambda: os.urandom(NAME_BYTES).hex(),
        recovery_threads=config.num_recovery_threads_per_data_dir,
        producer_expiration_ms=config.producer_id_expiration_ms,
        verification_enabled=config.transaction_partition_verification_enable,
    )

    for path, error in failed.items():
        logs.dirs[path].error = error

    def config_of(topic: str) -> LogConfig:
        return config.log_config(image.topic_configs(topic))

    for report in logs.load(config_of, now_ms, Opening(SystemClock()).progress):
        if not report.clean and report.logs:
            logger.info("recovered after an unclean stop", log_dir=report.path, logs=report.logs)
        for warning in report.warnings:
            logger.warning("problem found at start", log_dir=report.path, problem=warning)
    for opened in logs:
        tell_recovered(opened)
    for log_dir in logs.dirs.values():
        if log_dir.error is not None:
            logger.error("log directory is offline", log_dir=log_dir.path, reason=str(log_dir.error))
    if not logs.online_dirs():
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no log directory can be used: see the errors above")
    return logs


def tell_recovered(opened: Log) -> None:
    """Logs the damage that was found in a log: what differed from a clean stop, what was cut, and indexes that were
    rebuilt because they were missing or wrong although their segments needed no recovery.
    """
    partition, recovered = str(opened.topic_partition), opened.recovered
    if recovered.doubt is not None:
        logger.warning(
            "log has changed since the last shutdown: recovered", partition=partition, reason=recovered.doubt
        )
    if recovered.cut is not None:
        event = "torn tail cut" if recovered.cut.set_aside is None else "records set aside"
        logger.warning(event, partition=partition, cut=str(recovered.cut))
    if recovered.rebuilt and recovered.doubt is None and recovered.cut is None:
        logger.warning("indexes rebuilt", partition=partition, segments=recovered.rebuilt[:LISTED_SEGMENTS])


class Opening:
    """Logs the progress of opening logs, if it takes long."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told_ms = clock.monotonic_ms()

    def progress(self, log_dir: str, opened: int, total: int) -> None:
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._told_ms >= TELL_EVERY_MS:
            self._told_ms = now_ms
            logger.info("opening logs", log_dir=log_dir, opened=opened, total=total)
