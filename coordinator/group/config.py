"""GroupConfig: the options of one group, and their limits in the broker's options.

Names, types, defaults and bounds are those of Apache Kafka 4.4 (GroupConfig; KIP-848, KIP-932, KIP-1071). Each has a
broker option, with group. before its name, for groups that don't set it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Final

from protocol.config import BOOLEAN, INT, LIST, LONG, STRING, Check, Config, ConfigError, option
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


NOT_OFFLOADED: Final = "Has no effect: the broker decides where an assignor runs."
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


STREAMS_ASSIGNORS: Final = ("sticky",)
"""The assignors of streams groups, by name."""


def _streams_assignor(name: str, value: object) -> str | None:
    if value in STREAMS_ASSIGNORS:
        return None
    registered = ", ".join(STREAMS_ASSIGNORS)
    return f"{name} '{value}' is not a registered task assignor. Registered assignors are: [{registered}]."


STREAMS_ASSIGNOR: Final = Check("", _streams_assignor)


class GroupConfig(Config):
    """The options in force for one group: its own, or the broker's."""

    KIND: ClassVar[str] = "group"

    # Options that Kafka 4.3 doesn't have are internal: DescribeConfigs returns them only if they are set.

    consumer_assignment_interval_ms = option(
        INT,
        1000,
        "Shortest time between two computed assignments of the consumer group.",
        at_least=0,
        synonyms=("group.consumer.assignment.interval.ms",),
    )
    consumer_assignor_offload_enable = option(
        BOOLEAN,
        True,
        NOT_OFFLOADED,
        synonyms=("group.consumer.assignor.offload.enable",),
        internal=True,
    )
    consumer_heartbeat_interval_ms = option(
        INT,
        5000,
        "Time between heartbeats of the consumer group's members.",
        at_least=1,
        synonyms=("group.consumer.heartbeat.interval.ms",),
    )
    consumer_session_timeout_ms = option(
        INT,
        45_000,
        "A member of the consumer group is removed after this time without a heartbeat.",
        at_least=1,
        synonyms=("group.consumer.session.timeout.ms",),
    )
    errors_deadletterqueue_topic_name = option(
        STRING,
        "",
        "Topic that gets the records which the share group gives up; empty for none (KIP-1191).",
        check=DEAD_LETTER_QUEUE,
    )
    errors_deadletterqueue_copy_record_enable = option(
        BOOLEAN,
        False,
        "Copy the keys and values of these records to the topic, in addition to their positions (KIP-1191).",
    )
    odradek_share_delivery_delay_header = option(
        STRING,
        "",
        "Record header that says when a record may be delivered, as ms after its timestamp or as @ms since 1970; "
        "empty for none.",
        check=HEADER_NAME,
        internal=True,
    )
    odradek_share_delivery_delay_max_ms = option(
        LONG,
        7 * DAY_MS,
        "Longest time after its timestamp that a record's header can delay it.",
        at_least=0,
        internal=True,
    )
    odradek_share_order_by_key = option(
        BOOLEAN,
        False,
        "Deliver records of one key to one consumer at a time, in the order of their offsets.",
        internal=True,
    )
    odradek_share_redelivery_backoff_ms = option(
        INT,
        0,
        "Pause before a record that was released or timed out is offered again; doubles with each delivery.",
        at_least=0,
        internal=True,
    )
    odradek_share_redelivery_backoff_max_ms = option(
        INT, 60_000, "Longest pause before a record is offered again.", at_least=0, internal=True
    )
    share_assignment_interval_ms = option(
        INT,
        1000,
        "Shortest time between two computed assignments of the share group.",
        at_least=0,
        synonyms=("group.share.assignment.interval.ms",),
    )
    share_assignor_offload_enable = option(
        BOOLEAN,
        True,
        NOT_OFFLOADED,
        synonyms=("group.share.assignor.offload.enable",),
        internal=True,
    )
    share_auto_offset_reset = option(
        STRING,
        "latest",
        "Where a share group starts in a partition without share group state; by_duration counts back from now.",
        check=OFFSET_RESET,
    )
    share_delivery_count_limit = option(
        INT,
        5,
        "Number of deliveries to the share group after which a record is archived.",
        at_least=2,
        synonyms=("group.share.delivery.count.limit",),
    )
    share_heartbeat_interval_ms = option(
        INT,
        5000,
        "Time between heartbeats of the share group's members.",
        at_least=1,
        synonyms=("group.share.heartbeat.interval.ms",),
    )
    share_isolation_level = option(
        STRING,
        "read_uncommitted",
        "Whether the share group reads all records, or only records outside of open and aborted transactions.",
        one_of=("read_committed", "read_uncommitted"),
    )
    share_partition_max_record_locks = option(
        INT,
        2000,
        "Records of a share partition that may be acquired at once.",
        at_least=100,
        synonyms=("group.share.partition.max.record.locks",),
    )
    share_record_lock_duration_ms = option(
        INT,
        30_000,
        "Time that an acquired record stays locked for its consumer.",
        at_least=1000,
        synonyms=("group.share.record.lock.duration.ms",),
    )
    share_renew_acknowledge_enable = option(
        BOOLEAN, True, "Let consumers of the share group renew their locks (KIP-1222)."
    )
    share_session_timeout_ms = option(
        INT,
        45_000,
        "A member of the share group is removed after this time without a heartbeat.",
        at_least=1,
        synonyms=("group.share.session.timeout.ms",),
    )
    streams_acceptable_recovery_lag = option(
        LONG,
        10_000,
        "Largest lag of a copy of a task's state, in offsets, with which a member counts as caught up.",
        at_least=0,
        synonyms=("group.streams.acceptable.recovery.lag",),
        internal=True,
    )
    streams_assignment_interval_ms = option(
        INT,
        1000,
        "Shortest time between two computed assignments of the streams group.",
        at_least=0,
        synonyms=("group.streams.assignment.interval.ms",),
    )
    streams_assignor_name = option(
        STRING,
        None,
        "Assignor of the streams group's tasks; unset for the first of group.streams.assignors.",
        check=STREAMS_ASSIGNOR,
        synonyms=("group.streams.assignors",),
    )
    streams_assignor_offload_enable = option(
        BOOLEAN,
        True,
        "Has no effect: the assignor runs in the coordinator.",
        synonyms=("group.streams.assignor.offload.enable",),
        internal=True,
    )
    streams_heartbeat_interval_ms = option(
        INT,
        5000,
        "Time between heartbeats of the streams group's members.",
        at_least=1,
        synonyms=("group.streams.heartbeat.interval.ms",),
    )
    streams_initial_rebalance_delay_ms = option(
        INT,
        3000,
        "Time that the first assignment of an empty streams group waits for more members.",
        at_least=0,
        synonyms=("group.streams.initial.rebalance.delay.ms",),
    )
    streams_num_standby_replicas = option(
        INT,
        0,
        "Standby replicas of each task of the streams group.",
        at_least=0,
        synonyms=("group.streams.num.standby.replicas",),
    )
    streams_num_warmup_replicas = option(
        INT,
        2,
        "Has no effect: as in Kafka 4.4, no assignor assigns warm-up tasks.",
        at_least=0,
        synonyms=("group.streams.num.warmup.replicas",),
        internal=True,
    )
    streams_rack_aware_assignment_tags = option(
        LIST,
        (),
        "Keys of the client tags that every member of the streams group must have.",
        importance="low",
        synonyms=("group.streams.rack.aware.assignment.tags",),
    )
    streams_session_timeout_ms = option(
        INT,
        45_000,
        "A member of the streams group is removed after this time without a heartbeat.",
        at_least=1,
        synonyms=("group.streams.session.timeout.ms",),
    )
    streams_task_offset_interval_ms = option(
        INT,
        60_000,
        "Interval in which members report the offsets of the state that they restore.",
        at_least=1,
        synonyms=("group.streams.task.offset.interval.ms",),
        internal=True,
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


def outside(values: Mapping[str, object], limits: Mapping[str, int], prefix: str = "") -> Iterator[ConfigError]:
    """Yields an error for each of `values`, by group option name, that breaks `limits` or contradicts another; `prefix`
    is put before names in the text."""
    numbers = {name: value for name, value in values.items() if isinstance(value, int)}
    for name, value in numbers.items():
        low, high = limit_names(name)
        least, most = limits.get(low, value), limits.get(high, value)
        if least <= value <= most:
            continue
        problem = f"be greater than or equal to {low}" if value < least else f"be less than or equal to {high}"
        if not prefix and low in limits:
            problem = f"be in the range {least} to {most} inclusive."
        elif not prefix:
            problem = f"be less than or equal to {most}"
        yield ConfigError(f"{prefix}{name} must {problem}", name=name)
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if numbers[session] <= numbers[heartbeat]:
            yield ConfigError(f"{prefix}{session} must be greater than {prefix}{heartbeat}", name=session)


def clamped(value: int, name: str, limits: Mapping[str, int]) -> int:
    """Returns a value within the broker's limits, which may have changed since it was set."""
    low, high = limit_names(name)
    return min(max(value, limits.get(low, value)), limits.get(high, value))
