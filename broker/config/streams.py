"""Options of streams groups (KIP-1071)."""

from __future__ import annotations

from typing import Final

from protocol.config import CLUSTER_WIDE, INT, Config, option

MAX_INT: Final = (1 << 31) - 1


class StreamsOptions(Config):
    """Options of streams groups (KIP-1071)."""

    group_streams_assignment_interval_ms = option(
        INT, 1_000, "Shortest time between two computed assignments of a group.", at_least=0, update=CLUSTER_WIDE
    )
    group_streams_heartbeat_interval_ms = option(INT, 5_000, "Interval between two heartbeats of a member.", at_least=1)
    group_streams_initial_rebalance_delay_ms = option(
        INT, 3_000, "Time that the first assignment of an empty group waits for more members.", at_least=0
    )
    group_streams_max_assignment_interval_ms = option(
        INT, 15_000, "Largest streams.assignment.interval.ms that a group may have.", at_least=0
    )
    group_streams_max_heartbeat_interval_ms = option(
        INT, 15_000, "Largest streams.heartbeat.interval.ms that a group may have.", at_least=1
    )
    group_streams_max_session_timeout_ms = option(
        INT, 60_000, "Largest streams.session.timeout.ms that a group may have.", at_least=1
    )
    group_streams_max_size = option(INT, MAX_INT, "Maximum number of members in a streams group.", at_least=1)
    group_streams_max_standby_replicas = option(
        INT, 2, "Largest streams.num.standby.replicas that a group may have.", at_least=0
    )
    group_streams_min_assignment_interval_ms = option(
        INT, 0, "Smallest streams.assignment.interval.ms that a group may have.", at_least=0
    )
    group_streams_min_heartbeat_interval_ms = option(
        INT, 5_000, "Smallest streams.heartbeat.interval.ms that a group may have.", at_least=1
    )
    group_streams_min_session_timeout_ms = option(
        INT, 45_000, "Smallest streams.session.timeout.ms that a group may have.", at_least=1
    )
    group_streams_num_standby_replicas = option(INT, 0, "Number of standby replicas of each task.", at_least=0)
    group_streams_session_timeout_ms = option(
        INT, 45_000, "A member is removed after this time without a heartbeat.", at_least=1
    )
