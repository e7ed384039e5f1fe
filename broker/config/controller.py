"""Options of the controller's periodic elections. Source: ReplicationConfigs of Apache Kafka 4.3."""

from __future__ import annotations

from protocol.config import BOOLEAN, LONG, Config, option


class ControllerOptions(Config):
    """Periodic elections of the controller in this process."""

    auto_leader_rebalance_enable = option(
        BOOLEAN, True, "Return leadership to preferred leaders once they are in sync again.", importance="high"
    )
    leader_imbalance_check_interval_seconds = option(
        LONG,
        300,
        "Time between two checks for partitions that are not led by their preferred leader.",
        at_least=1,
        importance="high",
    )
    unclean_leader_election_interval_ms = option(
        LONG,
        300_000,
        "Time between two checks for partitions without a leader that may elect an unclean leader.",
        at_least=1,
        importance="medium",
        internal=True,
    )
