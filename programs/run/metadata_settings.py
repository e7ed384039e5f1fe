"""The settings of the cluster's metadata, from the broker's configuration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from broker.config import BrokerConfig
from broker.config.alter import broker_checker, check_client_metrics, group_checker, list_defaults
from broker.config.listeners import PROTOCOLS, ListenerAddress
from broker.config.live import LiveConfig
from broker.metadata.log import log_config
from broker.metadata.opening import MetadataSettings
from broker.metadata.snapshots import SnapshotRules
from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.configs.resource import ResourceType
from coordinator.cluster.options import ClusterOptions, TokenRules
from protocol.lazy import lazy
from storage.config import LogConfig

if TYPE_CHECKING:
    from broker.security import store_changes
else:  # with the first change of a key store
    store_changes = lazy("broker.security.store_changes")

UNREACHABLE = (Endpoint("CONTROLLER", "127.0.0.1", 9093),)
"""The controller's endpoint in the metadata if it has no listener: Kafka requires one."""

MS_PER_S = 1_000


def metadata_log_config(config: BrokerConfig) -> LogConfig:
    """Returns the configuration of the metadata log."""
    segment_bytes = config.internal_metadata_log_segment_bytes or config.metadata_log_segment_bytes
    return log_config(segment_bytes, config.metadata_log_segment_ms)


def snapshot_rules(config: BrokerConfig) -> SnapshotRules:
    """Returns the rules for snapshots of the metadata."""
    return SnapshotRules(
        max_record_bytes=config.metadata_log_max_record_bytes_between_snapshots,
        max_interval_ms=config.metadata_log_max_snapshot_interval_ms,
        retention_bytes=config.metadata_max_retention_bytes,
        retention_ms=config.metadata_max_retention_ms,
    )


def endpoints(listeners: Sequence[ListenerAddress]) -> list[Endpoint]:
    """Returns the endpoints that a broker registers for its listeners."""
    return [
        Endpoint(listener.name, listener.host, listener.port, PROTOCOLS.index(listener.security_protocol))
        for listener in listeners
    ]


def metadata_settings(
    config: BrokerConfig,
    live_config: LiveConfig,
    listeners: Sequence[ListenerAddress],
    controller_listeners: Sequence[ListenerAddress],
) -> MetadataSettings:
    """Returns the settings of a node with these advertised listeners for clients and of its controller."""
    return MetadataSettings(
        log_dirs=tuple(config.data_dirs),
        options=cluster_options(config, listeners, controller_listeners),
        metadata_log_dir=config.metadata_dir,
        checkers={
            ResourceType.BROKER: broker_checker(lambda: live_config.layers, _check_stores),
            ResourceType.GROUP: group_checker(lambda: live_config.layers),
            ResourceType.CLIENT_METRICS: check_client_metrics,
        },
        snapshots=snapshot_rules(config),
        log_config=metadata_log_config(config),
        list_options={ResourceType.BROKER: list_defaults()},
        hands_over=config.controlled_shutdown_enable,
    )


def _check_stores(before: BrokerConfig, after: BrokerConfig, names: Iterable[str]) -> None:
    store_changes.check_stores(before, after, names)


def cluster_options(
    config: BrokerConfig,
    advertised_listeners: Sequence[ListenerAddress],
    controller_listeners: Sequence[ListenerAddress] = (),
) -> ClusterOptions:
    """Returns the options of the cluster's metadata. `controller_listeners` are the advertised listeners of the
    controller in this process."""
    return ClusterOptions(
        node_id=config.node_id,
        listeners=tuple(endpoints(advertised_listeners)),
        controller_listeners=tuple(endpoints(controller_listeners)) or UNREACHABLE,
        is_reachable=bool(controller_listeners),
        rack=config.broker_rack,
        num_partitions=config.num_partitions,
        default_replication_factor=config.default_replication_factor,
        min_insync_replicas=config.min_insync_replicas,
        delete_topic_enable=config.delete_topic_enable,
        clamp_replication_factor=config.lowers_replication_factors,
        has_broker="broker" in config.process_roles,
        broker_session_timeout_ms=config.broker_session_timeout_ms,
        auto_leader_rebalance_enable=config.auto_leader_rebalance_enable,
        leader_imbalance_check_interval_ms=config.leader_imbalance_check_interval_seconds * MS_PER_S,
        unclean_leader_election_interval_ms=config.unclean_leader_election_interval_ms,
        metadata_max_idle_interval_ms=config.metadata_max_idle_interval_ms,
        tokens=token_rules(config),
        static_configs=config.explicit,
    )


def token_rules(config: BrokerConfig) -> TokenRules:
    """Returns the options of delegation tokens; an empty secret counts as none."""
    return TokenRules(
        secret_key=config.delegation_token_secret_key or None,
        max_lifetime_ms=config.delegation_token_max_lifetime_ms,
        expiry_time_ms=config.delegation_token_expiry_time_ms,
        expiry_check_interval_ms=config.delegation_token_expiry_check_interval_ms,
    )
