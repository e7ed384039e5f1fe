"""Options of the controller's periodic elections. Source: ReplicationConfigs of Apache Kafka 4.3."""

from __future__ import annotations

from protocol.config import BOOLEAN, LONG, Config, option


class ControllerOptions(Config):
    """Periodic elections of the controller in this process."""

    auto_leader_rebalance_enable = option(
        "auto.leader.rebalance.enable",
        BOOLEAN,
        True,
        importance="high",
        doc="Return leadership to preferred leaders once they are in sync again.",
    )
    leader_imbalance_check_interval_seconds = option(
        "leader.imbalance.check.interval.seconds",
        LONG,
        300,
        at_least=1,
        importance="high",
        doc="Time between two checks for partitions that are not led by their preferred leader.",
    )
    unclean_leader_election_interval_ms = option(
        "unclean.leader.election.interval.ms",
        LONG,
        300_000,
        at_least=1,
        importance="medium",
        internal=True,
        doc="Time between two checks for partitions without a leader that may elect an unclean leader.",
    )
