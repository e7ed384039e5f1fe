"""The settings of the quorum of controllers, from the configuration. A node that is its cluster's only controller needs
none of this.
"""

from __future__ import annotations

from broker.config import BrokerConfig
from broker.metadata.joining import Quorum
from broker.metadata.observing import QuorumTimes
from broker.metadata.remote_node import LifecycleTimes
from broker.security.outbound import controller_settings
from coordinator.quorum.leadership import Location
from coordinator.quorum.observer import FetchLimits
from coordinator.quorum.ready import RaftConfig


def quorum_of(config: BrokerConfig) -> Quorum:
    """Returns the quorum of the configuration."""
    return Quorum(
        voters={
            controller.node_id: Location(controller.host, controller.port)
            for controller in config.controllers
            if controller.node_id >= 0
        },
        bootstrap=tuple(Location(controller.host, controller.port) for controller in config.controllers),
        listener=config.controller_listener_names[0],
        raft=RaftConfig(
            election_timeout_ms=config.controller_quorum_election_timeout_ms,
            election_backoff_max_ms=config.controller_quorum_election_backoff_max_ms,
            fetch_timeout_ms=config.controller_quorum_fetch_timeout_ms,
            request_timeout_ms=config.controller_quorum_request_timeout_ms,
            retry_backoff_ms=config.controller_quorum_retry_backoff_ms,
            fetch_bytes=config.controller_quorum_fetch_max_bytes,
            snapshot_bytes=config.controller_quorum_fetch_snapshot_max_bytes,
            auto_join=config.controller_quorum_auto_join_enable,
        ),
        peers=controller_settings(config),
        times=QuorumTimes(
            request_ms=config.controller_quorum_request_timeout_ms,
            fetch_ms=config.controller_quorum_fetch_timeout_ms,
            backoff_ms=config.controller_quorum_retry_backoff_ms,
        ),
        lifecycle=LifecycleTimes(
            heartbeat_ms=config.broker_heartbeat_interval_ms,
            session_ms=config.broker_session_timeout_ms,
            registration_ms=config.initial_broker_registration_timeout_ms,
            directory_failure_ms=config.log_dir_failure_timeout_ms,
        ),
        limits=FetchLimits(
            fetch_bytes=config.controller_quorum_fetch_max_bytes,
            snapshot_bytes=config.controller_quorum_fetch_snapshot_max_bytes,
        ),
    )
