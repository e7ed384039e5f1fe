"""Options of streams groups (KIP-1071)."""

from __future__ import annotations

from typing import Final

from protocol.config import CLUSTER_WIDE, INT, Config, option

MAX_INT: Final = (1 << 31) - 1


class StreamsOptions(Config):
    """Options of streams groups (KIP-1071)."""

    group_streams_assignment_interval_ms = option(
        "group.streams.assignment.interval.ms",
        INT,
        1_000,
        at_least=0,
        update=CLUSTER_WIDE,
        doc="Shortest time between two computed assignments of a group.",
    )
    group_streams_heartbeat_interval_ms = option(
        "group.streams.heartbeat.interval.ms",
        INT,
        5_000,
        at_least=1,
        doc=("Interval between two heartbeats of a member."),
    )
    group_streams_initial_rebalance_delay_ms = option(
        "group.streams.initial.rebalance.delay.ms",
        INT,
        3_000,
        at_least=0,
        doc="Time that the first assignment of an empty group waits for more members.",
    )
    group_streams_max_assignment_interval_ms = option(
        "group.streams.max.assignment.interval.ms",
        INT,
        15_000,
        at_least=0,
        doc="Largest streams.assignment.interval.ms that a group may have.",
    )
    group_streams_max_heartbeat_interval_ms = option(
        "group.streams.max.heartbeat.interval.ms",
        INT,
        15_000,
        at_least=1,
        doc="Largest streams.heartbeat.interval.ms that a group may have.",
    )
    group_streams_max_session_timeout_ms = option(
        "group.streams.max.session.timeout.ms",
        INT,
        60_000,
        at_least=1,
        doc="Largest streams.session.timeout.ms that a group may have.",
    )
    group_streams_max_size = option(
        "group.streams.max.size", INT, MAX_INT, at_least=1, doc="Maximum number of members in a streams group."
    )
    group_streams_max_standby_replicas = option(
        "group.streams.max.standby.replicas",
        INT,
        2,
        at_least=0,
        doc="Largest streams.num.standby.replicas that a group may have.",
    )
    group_streams_min_assignment_interval_ms = option(
        "group.streams.min.assignment.interval.ms",
        INT,
        0,
        at_least=0,
        doc="Smallest streams.assignment.interval.ms that a group may have.",
    )
    group_streams_min_heartbeat_interval_ms = option(
        "group.streams.min.heartbeat.interval.ms",
        INT,
        5_000,
        at_least=1,
        doc="Smallest streams.heartbeat.interval.ms that a group may have.",
    )
    group_streams_min_session_timeout_ms = option(
        "group.streams.min.session.timeout.ms",
        INT,
        45_000,
        at_least=1,
        doc="Smallest streams.session.timeout.ms that a group may have.",
    )
    group_streams_num_standby_replicas = option(
        "group.streams.num.standby.replicas", INT, 0, at_least=0, doc="Number of standby replicas of each task."
    )
    group_streams_session_timeout_ms = option(
        "group.streams.session.timeout.ms",
        INT,
        45_000,
        at_least=1,
        doc="A member is removed after this time without a heartbeat.",
    )
