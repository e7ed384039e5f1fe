"""Options of the controller's periodic elections. Source: ReplicationConfigs of Apache Kafka 4.3."""

from __future__ import annotations

from protocol.config import BOOLEAN, LONG, Config, option


class ControllerOptions(Config):
    """The elections that a controller in this process holds unasked."""

    auto_leader_rebalance_enable = option(
        "auto.leader.rebalance.enable",
        BOOLEAN,
        True,
        importance="high",
        doc="Give partitions back to their preferred leaders, once these are in sync again.",
    )
    leader_imbalance_check_interval_seconds = option(
        "leader.imbalance.check.interval.seconds",
        LONG,
        300,
        at_least=1,
        importance="high",
        doc="Time between two checks for partitions that others than their preferred leaders lead.",
    )
    unclean_leader_election_interval_ms = option(
        "unclean.leader.election.interval.ms",
        LONG,
        300_000,
        at_least=1,
        importance="medium",
        internal=True,
        doc="Time between two checks for partitions without a leader that may have an unclean one.",
    )
