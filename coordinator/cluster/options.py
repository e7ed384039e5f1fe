"""The broker's options that cluster metadata depends on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.image import NO_CONFIGS

NO_BROKER = -1


class TokenRules(NamedTuple):
    """The options delegation.token.…, by the rest of their names."""

    secret_key: str | None = None
    """The secret of tokens' keys; None if there are no tokens."""
    max_lifetime_ms: int = 604_800_000
    expiry_time_ms: int = 86_400_000
    expiry_check_interval_ms: int = 3_600_000

    def __repr__(self) -> str:
        return f"TokenRules({'with' if self.secret_key else 'without'} a key)"


NO_TOKENS = TokenRules()


class ClusterOptions(NamedTuple):
    """Options of the node, by Kafka's names if Kafka has them."""

    node_id: int = 1
    listeners: tuple[Endpoint, ...] = (Endpoint("PLAINTEXT", "127.0.0.1", 9092),)  # as advertised
    controller_listeners: tuple[Endpoint, ...] = (Endpoint("CONTROLLER", "127.0.0.1", 9093),)  # as advertised
    is_reachable: bool = False
    """True if the controller listens on controller_listeners. If it doesn't, the metadata must still have an
    endpoint.
    """
    rack: str | None = None  # broker.rack
    num_partitions: int = 1
    default_replication_factor: int = 1
    min_insync_replicas: int = 1
    delete_topic_enable: bool = True
    clamp_replication_factor: bool = False
    """Development profile: a replication factor above the number of brokers is lowered to it, not rejected."""
    has_broker: bool = True
    """True if this node is a broker, too."""
    broker_session_timeout_ms: int = 9_000
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_ms: int = 300_000
    unclean_leader_election_interval_ms: int = 300_000
    metadata_max_idle_interval_ms: int = 500
    tokens: TokenRules = NO_TOKENS
    static_configs: Mapping[str, str] = NO_CONFIGS
    """The options that server.properties sets, by Kafka's names; they are the defaults of topic configs."""

    @property
    def own_broker_id(self) -> int:
        """The id of the broker in the controller's process; NO_BROKER if there is none."""
        return self.node_id if self.has_broker else NO_BROKER
