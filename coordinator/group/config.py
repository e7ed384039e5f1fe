"""GroupConfig: the options of one group, and their limits in the broker's options.

Names, types, defaults and bounds are those of Apache Kafka 4.3 (GroupConfig; KIP-848, KIP-932, KIP-1071). Each has a
broker option, with group. before its name, for groups that don't set it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Final

from protocol.config import BOOLEAN, INT, LONG, STRING, Check, Config, ConfigError, option
from protocol.numbers import INT64, whole_number

DAY_MS: Final = 86_400_000
UNITS_MS: Final = (DAY_MS, 3_600_000, 60_000, 1_000)
DURATION: Final = r"\+?P(?:\+?(\d+)D)?(?:T(?=.)(?:\+?(\d+)H)?(?:\+?(\d+)M)?(?:\+?(\d+)(?:[.,](\d{0,9}))?S)?)?"
BY_DURATION: Final = "by_duration:"


def duration_ms(text: str) -> int | None:
    """Returns the milliseconds of an ISO 8601 duration of days to seconds, such as PT1H30M; None if it is invalid,
    negative, or larger than an int64."""
    match = re.fullmatch(DURATION, text, re.IGNORECASE)
    if match is None or not any(match.groups()):
        return None
    duration = int((match[5] or "").ljust(3, "0")[:3])
    for text_of_unit, unit_ms in zip(match.groups()[:4], UNITS_MS, strict=True):
        count = whole_number(text_of_unit or "0")
        if count is None:
            return None
        duration += count * unit_ms
    return duration if duration in INT64 else None


def _offset_reset(name: str, value: object) -> str | None:
    text = str(value)
    is_named = text in ("earliest", "latest")
    if is_named or (text.startswith(BY_DURATION) and duration_ms(text.removeprefix(BY_DURATION)) is not None):
        return None
    return (
        f"Invalid value `{text}` for configuration {name}. "
        "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    )


def _queue(name: str, value: object) -> str | None:
    return f"{name}: DLQ topic name must not start with '__'" if str(value).startswith("__") else None


DEAD_LETTER_QUEUE: Final = Check("a topic that is not internal", _queue)
OFFSET_RESET: Final = Check("[latest, earliest, by_duration:PnDTnHnMn.nS]", _offset_reset)


MAX_HEADER_NAME: Final = 255


def _header_name(name: str, value: object) -> str | None:
    text = str(value)
    if len(text) <= MAX_HEADER_NAME and text.isprintable():
        return None
    return (
        f"Invalid value `{text}` for configuration {name}. "
        f"The name of a record header must have at most {MAX_HEADER_NAME} printable characters."
    )


HEADER_NAME: Final = Check(f"name of a record header, up to {MAX_HEADER_NAME} characters", _header_name)


class GroupConfig(Config):
    """The options in force for one group: its own, or the broker's."""

    KIND: ClassVar[str] = "group"

    # Options that Kafka 4.3 doesn't have are internal: DescribeConfigs returns them only if they are set.

    consumer_assignment_interval_ms = option(
        "consumer.assignment.interval.ms",
        INT,
        1000,
        at_least=0,
        synonyms=("group.consumer.assignment.interval.ms",),
        doc="Shortest time between two computed assignments of the consumer group.",
    )
    consumer_heartbeat_interval_ms = option(
        "consumer.heartbeat.interval.ms",
        INT,
        5000,
        at_least=1,
        synonyms=("group.consumer.heartbeat.interval.ms",),
        doc="Time between heartbeats of the consumer group's members.",
    )
    consumer_session_timeout_ms = option(
        "consumer.session.timeout.ms",
        INT,
        45_000,
        at_least=1,
        synonyms=("group.consumer.session.timeout.ms",),
        doc="A member of the consumer group is removed after this time without a heartbeat.",
    )
    errors_deadletterqueue_topic_name = option(
        "errors.deadletterqueue.topic.name",
        STRING,
        "",
        check=DEAD_LETTER_QUEUE,
        internal=True,
        doc="Topic that gets the records which the share group gives up; empty for none (KIP-1191).",
    )
    errors_deadletterqueue_copy_record_enable = option(
        "errors.deadletterqueue.copy.record.enable",
        BOOLEAN,
        False,
        internal=True,
        doc="Copy the keys and values of these records to the topic, in addition to their positions (KIP-1191).",
    )
    odradek_share_delivery_delay_header = option(
        "odradek.share.delivery.delay.header",
        STRING,
        "",
        check=HEADER_NAME,
        internal=True,
        doc="Record header that says when a record may be delivered, as ms after its timestamp or as @ms since 1970; "
        "empty for none.",
    )
    odradek_share_delivery_delay_max_ms = option(
        "odradek.share.delivery.delay.max.ms",
        LONG,
        7 * DAY_MS,
        at_least=0,
        internal=True,
        doc="Longest time after its timestamp that a record's header can delay it.",
    )
    odradek_share_order_by_key = option(
        "odradek.share.order.by.key",
        BOOLEAN,
        False,
        internal=True,
        doc="Deliver records of one key to one consumer at a time, in the order of their offsets.",
    )
    odradek_share_redelivery_backoff_ms = option(
        "odradek.share.redelivery.backoff.ms",
        INT,
        0,
        at_least=0,
        internal=True,
        doc="Pause before a record that was released or timed out is offered again; doubles with each delivery.",
    )
    odradek_share_redelivery_backoff_max_ms = option(
        "odradek.share.redelivery.backoff.max.ms",
        INT,
        60_000,
        at_least=0,
        internal=True,
        doc="Longest pause before a record is offered again.",
    )
    share_assignment_interval_ms = option(
        "share.assignment.interval.ms",
        INT,
        1000,
        at_least=0,
        synonyms=("group.share.assignment.interval.ms",),
        doc="Shortest time between two computed assignments of the share group.",
    )
    share_auto_offset_reset = option(
        "share.auto.offset.reset",
        STRING,
        "latest",
        check=OFFSET_RESET,
        doc="Where a share group starts in a partition without share group state; by_duration counts back from now.",
    )
    share_delivery_count_limit = option(
        "share.delivery.count.limit",
        INT,
        5,
        at_least=2,
        synonyms=("group.share.delivery.count.limit",),
        doc="Number of deliveries to the share group after which a record is archived.",
    )
    share_heartbeat_interval_ms = option(
        "share.heartbeat.interval.ms",
        INT,
        5000,
        at_least=1,
        synonyms=("group.share.heartbeat.interval.ms",),
        doc="Time between heartbeats of the share group's members.",
    )
    share_isolation_level = option(
        "share.isolation.level",
        STRING,
        "read_uncommitted",
        one_of=("read_committed", "read_uncommitted"),
        doc="Whether the share group reads all records, or only records outside of open and aborted transactions.",
    )
    share_partition_max_record_locks = option(
        "share.partition.max.record.locks",
        INT,
        2000,
        at_least=100,
        synonyms=("group.share.partition.max.record.locks",),
        doc="Records of a share partition that may be acquired at once.",
    )
    share_record_lock_duration_ms = option(
        "share.record.lock.duration.ms",
        INT,
        30_000,
        at_least=1000,
        synonyms=("group.share.record.lock.duration.ms",),
        doc="Time that an acquired record stays locked for its consumer.",
    )
    share_renew_acknowledge_enable = option(
        "share.renew.acknowledge.enable",
        BOOLEAN,
        True,
        doc="Let consumers of the share group renew their locks (KIP-1222).",
    )
    share_session_timeout_ms = option(
        "share.session.timeout.ms",
        INT,
        45_000,
        at_least=1,
        synonyms=("group.share.session.timeout.ms",),
        doc="A member of the share group is removed after this time without a heartbeat.",
    )
    streams_assignment_interval_ms = option(
        "streams.assignment.interval.ms",
        INT,
        1000,
        at_least=0,
        synonyms=("group.streams.assignment.interval.ms",),
        doc="Shortest time between two computed assignments of the streams group.",
    )
    streams_heartbeat_interval_ms = option(
        "streams.heartbeat.interval.ms",
        INT,
        5000,
        at_least=1,
        synonyms=("group.streams.heartbeat.interval.ms",),
        doc="Time between heartbeats of the streams group's members.",
    )
    streams_initial_rebalance_delay_ms = option(
        "streams.initial.rebalance.delay.ms",
        INT,
        3000,
        at_least=0,
        synonyms=("group.streams.initial.rebalance.delay.ms",),
        doc="Time that the first assignment of an empty streams group waits for more members.",
    )
    streams_num_standby_replicas = option(
        "streams.num.standby.replicas",
        INT,
        0,
        at_least=0,
        synonyms=("group.streams.num.standby.replicas",),
        doc="Standby replicas of each task of the streams group.",
    )
    streams_session_timeout_ms = option(
        "streams.session.timeout.ms",
        INT,
        45_000,
        at_least=1,
        synonyms=("group.streams.session.timeout.ms",),
        doc="A member of the streams group is removed after this time without a heartbeat.",
    )

    def outside(self, limits: Mapping[str, int]) -> Iterable[ConfigError]:
        """Yields an error for each option that breaks the broker's limits, which are given by broker option name
        (GroupConfig.validate)."""
        values = {entry.name: vars(self)[entry.attribute] for entry in self.OPTIONS.values() if entry.synonyms}
        return outside(values, limits)


def limit_names(name: str) -> tuple[str, str]:
    """Returns the broker options with the minimum and maximum of a group's option."""
    kind, _, what = name.partition(".")
    what = what.removeprefix("num.")
    return f"group.{kind}.min.{what}", f"group.{kind}.max.{what}"


def outside(values: Mapping[str, int], limits: Mapping[str, int], prefix: str = "") -> Iterator[ConfigError]:
    """Yields an error for each of `values`, by group option name, that breaks `limits` or contradicts another; `prefix`
    is put before names in the text."""
    for name, value in values.items():
        low, high = limit_names(name)
        if value < limits.get(low, value):
            yield ConfigError(f"{prefix}{name} must be greater than or equal to {low}", name=name)
        if value > limits.get(high, value):
            yield ConfigError(f"{prefix}{name} must be less than or equal to {high}", name=name)
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if values[session] <= values[heartbeat]:
            yield ConfigError(f"{prefix}{session} must be greater than {prefix}{heartbeat}", name=session)


def clamped(value: int, name: str, limits: Mapping[str, int]) -> int:
    """Returns a value within the broker's limits, which may have changed since it was set."""
    low, high = limit_names(name)
    return min(max(value, limits.get(low, value)), limits.get(high, value))
