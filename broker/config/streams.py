"""Options of streams groups (KIP-1071)."""

from __future__ import annotations

from typing import Final

from coordinator.group.config import STREAMS_ASSIGNORS
from protocol.config import BOOLEAN, CLUSTER_WIDE, INT, LIST, LONG, Config, option

MAX_INT: Final = (1 << 31) - 1


class StreamsOptions(Config):
    """Options of streams groups (KIP-1071)."""

    group_streams_acceptable_recovery_lag = option(
        LONG,
        10_000,
        "Largest lag of a copy of a task's state, in offsets, with which a member counts as caught up.",
        at_least=0,
        internal=True,
    )
    group_streams_assignment_interval_ms = option(
        INT, 1_000, "Shortest time between two computed assignments of a group.", at_least=0, update=CLUSTER_WIDE
    )
    group_streams_assignor_offload_enable = option(
        BOOLEAN, True, "Has no effect: the assignor runs in the coordinator.", update=CLUSTER_WIDE, internal=True
    )
    group_streams_assignors = option(
        LIST, STREAMS_ASSIGNORS, "Assignors of tasks, of which only sticky is known.", may_be_empty=False
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
    group_streams_max_warmup_replicas = option(
        INT, 20, "Largest streams.num.warmup.replicas that a group may have.", at_least=0, internal=True
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
    group_streams_min_task_offset_interval_ms = option(
        INT, 15_000, "Smallest streams.task.offset.interval.ms that a group may have.", at_least=1, internal=True
    )
    group_streams_num_standby_replicas = option(INT, 0, "Number of standby replicas of each task.", at_least=0)
    group_streams_num_warmup_replicas = option(
        INT, 2, "Has no effect: as in Kafka 4.4, no assignor assigns warm-up tasks.", at_least=0, internal=True
    )
    group_streams_rack_aware_assignment_tags = option(
        LIST, (), "Keys of the client tags that every member of a streams group must have.", importance="low"
    )
    group_streams_session_timeout_ms = option(
        INT, 45_000, "A member is removed after this time without a heartbeat.", at_least=1
    )
    group_streams_task_offset_interval_ms = option(
        INT,
        60_000,
        "Interval in which members report the offsets of the state that they restore.",
        at_least=1,
        internal=True,
    )
