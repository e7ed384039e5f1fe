"""BrokerConfig: every option of the broker, and the settings derived from several of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import ClassVar, Final, Self

from broker.config.controller import ControllerOptions
from broker.config.groups import GroupOptions
from broker.config.listeners import ListenerAddress, metrics_address, parse_listeners, protocol_map
from broker.config.logs import LogOptions
from broker.config.network import NetworkOptions, limits_by_host
from broker.config.node import NodeOptions
from broker.config.observability import ObservabilityOptions
from broker.config.quorum import ControllerAddress, QuorumOptions, controllers
from broker.config.replication import RACK_AWARE, ReplicationOptions
from broker.config.share import ShareOptions
from broker.config.streams import StreamsOptions
from broker.config.topics import TopicDefaults
from broker.config.transactions import TransactionOptions
from coordinator.group.config import GroupConfig, clamped, limit_names, outside
from protocol.config import ConfigError
from storage.config import HOUR_MS, LogConfig

MINUTE_MS: Final = 60_000
MIN_DEDUPE_BUFFER_BYTES: Final = 1 << 20  # per cleaner thread; a smaller offset map cleans almost nothing per pass


class BrokerConfig(
    NetworkOptions,
    NodeOptions,
    QuorumOptions,
    ControllerOptions,
    TopicDefaults,
    LogOptions,
    ReplicationOptions,
    GroupOptions,
    StreamsOptions,
    ShareOptions,
    TransactionOptions,
    ObservabilityOptions,
):
    """The broker's options. `BrokerConfig()` listens on 127.0.0.1:9092 and keeps its data in ./data."""

    KIND: ClassVar[str] = "broker"

    data_dirs: tuple[str, ...]
    """Directories of the logs: log.dirs, else log.dir."""
    metadata_dir: str
    """Directory of the metadata log: metadata.log.dir, else the first of data_dirs."""
    bound_listeners: tuple[ListenerAddress, ...]
    """Listeners for clients to open: `listeners` without those of the controller."""
    advertised: tuple[ListenerAddress, ...]
    """Listeners as clients are to reach them: advertised.listeners without those of the controller, else
    bound_listeners."""
    inter_broker_listener: str
    """Name of the listener that brokers use among themselves."""
    bound_controllers: tuple[ListenerAddress, ...]
    """Listeners of the controller in this process to open; () where it has none, and this node no peers."""
    advertised_controllers: tuple[ListenerAddress, ...]
    """Those listeners as brokers are to reach them."""
    has_remote_controllers: bool
    """True when the controllers are other processes: process.roles is broker alone."""
    is_broker: bool
    """True when this process is a broker, whether or not it is a controller too."""
    has_peers: bool
    """True when the cluster may have other nodes."""
    controllers: tuple[ControllerAddress, ...]
    """Addresses of the controllers: controller.quorum.voters, else controller.quorum.bootstrap.servers."""
    connection_limits: Mapping[str, int]
    """max.connections.per.ip.overrides, by host."""
    request_memory_bytes: int
    """queued.max.request.bytes, or the largest request if that is more."""
    request_memory_bytes_per_ip: int  # the part of request_memory_bytes that one address may hold
    metrics_address: tuple[str, int] | None  # host and port of odradek.metrics.listener, where it is set
    topic_defaults: LogConfig  # the configs of a topic that sets none of its own

    @classmethod
    def build(
        cls,
        values: Mapping[str, object],
        texts: Mapping[str, str],
        base: Mapping[str, object] | None = None,
        *,
        check: bool = True,
    ) -> Self:
        """See Config.build. node.id and broker.id are one number: each stands for the other where only one is given."""
        for given, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
            if given in texts and other not in texts:
                texts = {**texts, other: texts[given]}
                values = {**values, **cls.values({other: texts[given]})}
        return super().build(values, texts, base, check=check)

    def _derived(self) -> dict[str, object]:
        data_dirs = tuple(map(os.path.abspath, self.log_dirs or self.log_dir))
        return {
            "data_dirs": data_dirs,
            "metadata_dir": os.path.abspath(self.metadata_log_dir or data_dirs[0]),
            "connection_limits": limits_by_host(self.max_connections_per_ip_overrides),
            "topic_defaults": _topic_defaults(self),
            "has_remote_controllers": set(self.process_roles) == {"broker"},
            "is_broker": "broker" in self.process_roles,
            "controllers": controllers(self.controller_quorum_voters, self.controller_quorum_bootstrap_servers),
            "metrics_address": metrics_address(self.odradek_metrics_listener),
            **_request_memory(self),
            **_addresses(self),
        }

    def contradictions(self) -> Iterable[ConfigError]:
        """Yields the options that are valid one by one and wrong together (KafkaConfig.validateValues), and those that
        need what is not built."""
        problems = (problem(self) for problem in (*_REQUIREMENTS, *_ADDRESSES, *_QUORUM, *_UNBUILT))
        yield from map(ConfigError, filter(None, problems))
        yield from outside(self._group_values, self.group_limits, prefix="group.")

    def log_config(self, overrides: Mapping[str, str]) -> LogConfig:
        """Returns a topic's effective config: its own options over this broker's. Raises ConfigError."""
        return LogConfig.parse(overrides, self._log_values) if overrides else self.topic_defaults

    def group_config(self, overrides: Mapping[str, str]) -> GroupConfig:
        """Returns a group's effective config: its own options, within this broker's limits, over this broker's."""
        limits = self.group_limits
        own = {
            attribute: clamped(value, GROUP_NAMES[attribute], limits) if type(value) is int else value
            for attribute, value in GroupConfig.values(overrides).items()
        }
        return GroupConfig.build(own, overrides, {**GroupConfig.DEFAULTS, **self._group_defaults})

    def check_group(self, overrides: Mapping[str, str]) -> None:
        """Raises ConfigError when a group's own options are wrong or break this broker's limits."""
        base = {**GroupConfig.DEFAULTS, **self._group_defaults}
        for problem in GroupConfig.parse(overrides, base).outside(self.group_limits):
            raise problem

    @property
    def group_limits(self) -> dict[str, int]:
        """The options that limit those of groups, by name."""
        return {name: getattr(self, self.OPTIONS[name].attribute) for name in LIMIT_NAMES}

    @property
    def _group_defaults(self) -> dict[str, int]:
        return {GroupConfig.OPTIONS[name].attribute: value for name, value in self._group_values.items()}

    @property
    def _group_values(self) -> dict[str, int]:
        return {name: getattr(self, self.OPTIONS[f"group.{name}"].attribute) for name in LIMITED_NAMES}

    @property
    def _log_values(self) -> dict[str, object]:
        values = vars(self.topic_defaults)
        return {attribute: values[attribute] for attribute in LogConfig.DEFAULTS}


GROUP_NAMES: Final = {declared.attribute: name for name, declared in GroupConfig.OPTIONS.items()}
LIMITED_NAMES: Final = tuple(name for name, declared in GroupConfig.OPTIONS.items() if declared.synonyms)
LIMIT_NAMES: Final = tuple(
    limit for name in LIMITED_NAMES for limit in limit_names(name) if limit in BrokerConfig.OPTIONS
)


def _request_memory(config: BrokerConfig) -> dict[str, int]:
    queued = config.queued_max_request_bytes
    total = sys.maxsize if queued <= 0 else max(queued, config.socket_request_max_bytes)
    share = sys.maxsize if queued <= 0 else int(total * config.odradek_queued_request_share_per_ip)
    return {"request_memory_bytes": total, "request_memory_bytes_per_ip": share}


def _topic_defaults(config: BrokerConfig) -> LogConfig:
    """Returns the broker's options under the names that topics have for them (KafkaConfig.extractLogConfigMap)."""
    values = {
        declared.attribute: getattr(config, BrokerConfig.OPTIONS[declared.synonyms[0]].attribute)
        for declared in LogConfig.OPTIONS.values()
        if declared.synonyms
    }
    return LogConfig(
        **values
        | {
            "segment_ms": _or_else(config.log_roll_ms, config.log_roll_hours * HOUR_MS),
            "segment_jitter_ms": _or_else(config.log_roll_jitter_ms, config.log_roll_jitter_hours * HOUR_MS),
            "flush_ms": _or_else(config.log_flush_interval_ms, config.log_flush_scheduler_interval_ms),
            "retention_ms": _retention_ms(config),
        }
    )


def _or_else(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def _retention_ms(config: BrokerConfig) -> int:
    minutes = config.log_retention_minutes
    in_units = config.log_retention_hours * HOUR_MS if minutes is None else minutes * MINUTE_MS
    return max(-1, _or_else(config.log_retention_ms, in_units))


def _addresses(config: BrokerConfig) -> dict[str, object]:
    protocols = protocol_map(config.listener_security_protocol_map)
    controllers = {name.upper() for name in config.controller_listener_names}
    protocols = dict.fromkeys(controllers, "PLAINTEXT") | protocols
    bound = parse_listeners("listeners", config.listeners, protocols)
    advertised = parse_listeners("advertised.listeners", config.advertised_listeners or (), protocols)
    clients = tuple(listener for listener in bound if listener.name not in controllers)
    own_controllers = tuple(listener for listener in bound if listener.name in controllers)
    has_controller = "controller" in config.process_roles
    return {
        "bound_controllers": own_controllers if has_controller else (),
        "advertised_controllers": tuple(
            next((one for one in advertised if one.name == listener.name), listener) for listener in own_controllers
        ),
        "has_peers": bool(own_controllers) or not has_controller,
        "bound_listeners": clients,
        "advertised": tuple(listener for listener in advertised if listener.name not in controllers) or clients,
        "inter_broker_listener": (config.inter_broker_listener_name or config.security_inter_broker_protocol).upper(),
    }


def _client_listener(config: BrokerConfig) -> str | None:
    if config.bound_listeners or not config.is_broker:
        return None
    return "listeners has no listener for clients: all of them appear in controller.listener.names"


def _advertised_names(config: BrokerConfig) -> str | None:
    if not config.is_broker:
        return None
    bound = [listener.name for listener in config.bound_listeners]
    unknown = [listener.name for listener in config.advertised if listener.name not in bound]
    if not unknown:
        return None
    return f"advertised.listeners names {', '.join(unknown)}, which listeners has not: it has {', '.join(bound)}"


def _inter_broker_name(config: BrokerConfig) -> str | None:
    names = [listener.name for listener in config.advertised]
    if config.inter_broker_listener_name is None or config.inter_broker_listener in names or not config.is_broker:
        return None
    return (
        f"inter.broker.listener.name is {config.inter_broker_listener}, which is not advertised: {', '.join(names)} are"
    )


def _routable(config: BrokerConfig) -> str | None:
    advertised = (*config.advertised, *config.advertised_controllers)
    if config.advertised_listeners is None or all(listener.host != "0.0.0.0" for listener in advertised):
        return None
    return "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address."


def _plaintext_only(config: BrokerConfig) -> str | None:
    bound = (*config.bound_listeners, *config.bound_controllers)
    other = [one for one in bound if one.security_protocol != "PLAINTEXT"]
    if not other:
        return None
    return f"listeners: {other[0].name} is to speak {other[0].security_protocol}; only PLAINTEXT is built so far"


def _only_controllers(config: BrokerConfig) -> str | None:
    if config.is_broker or not config.bound_listeners:
        return None
    return (
        "The listeners config must only contain KRaft controller listeners from controller.listener.names when "
        f"process.roles=controller: {config.bound_listeners[0].name} is none of them"
    )


def _opens_own_controller(config: BrokerConfig) -> str | None:
    """Checks that a controller with names of listeners has one: without names it has no peers, and needs none."""
    is_alone = config.is_broker and not config.controller_listener_names
    if config.has_remote_controllers or config.bound_controllers or is_alone:
        return None
    return (
        "controller.listener.names must contain at least one value appearing in the 'listeners' configuration when "
        "running the KRaft controller role"
    )


def _own_voter(config: BrokerConfig) -> str | None:
    """Checks that a node with its own controller is the only voter."""
    voters = [one.node_id for one in config.controllers if config.controller_quorum_voters]
    if config.has_remote_controllers or voters in ([], [config.node_id]):
        return None
    return (
        f"controller.quorum.voters is {','.join(config.controller_quorum_voters)}; "
        f"the only voter can be this node, {config.node_id}: consensus between several controllers is Apache Kafka's"
    )


def _no_voter(config: BrokerConfig) -> str | None:
    voters = sorted(one.node_id for one in config.controllers if config.controller_quorum_voters)
    if not config.has_remote_controllers or config.node_id not in voters:
        return None
    return (
        f"If process.roles contains just the 'broker' role, the node id {config.node_id} must not be included in the "
        f"set of voters controller.quorum.voters={voters}"
    )


def _has_quorum(config: BrokerConfig) -> str | None:
    if not config.has_remote_controllers or config.controllers:
        return None
    return (
        "If using process.roles, either controller.quorum.bootstrap.servers must contain the set of bootstrap "
        "controllers or controller.quorum.voters must contain a parseable set of controllers."
    )


def _names_controllers(config: BrokerConfig) -> str | None:
    if not config.has_remote_controllers or config.controller_listener_names:
        return None
    return "controller.listener.names must contain at least one value when running KRaft with just the broker role"


def _opens_no_controller(config: BrokerConfig) -> str | None:
    if not config.has_remote_controllers or len(config.bound_listeners) == len(config.listeners):
        return None
    return (
        "controller.listener.names must not contain a value appearing in the 'listeners' configuration when running "
        "KRaft with just the broker role"
    )


def _plaintext_controllers(config: BrokerConfig) -> str | None:
    if not config.has_remote_controllers or not config.controller_listener_names:
        return None
    name = config.controller_listener_names[0].upper()
    protocol = protocol_map(config.listener_security_protocol_map).get(name, "PLAINTEXT")
    if protocol == "PLAINTEXT":
        return None
    return f"controller.listener.names: {name} is to speak {protocol}; only PLAINTEXT is built so far"


def _same_id(config: BrokerConfig) -> str | None:
    fits = config.broker_id in (-1, config.node_id)
    return None if fits else "You must set `node.id` to the same value as `broker.id`."


def _cleaner_buffer(config: BrokerConfig) -> str | None:
    threads = config.log_cleaner_threads
    if threads and config.log_cleaner_dedupe_buffer_size // threads > MIN_DEDUPE_BUFFER_BYTES:
        return None
    return "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."


def _roll(config: BrokerConfig) -> str | None:
    return None if config.topic_defaults.segment_ms >= 1 else "log.roll.ms must be greater than or equal to 1"


def _roll_jitter(config: BrokerConfig) -> str | None:
    fits = config.topic_defaults.segment_jitter_ms >= 0
    return None if fits else "log.roll.jitter.ms must be greater than or equal to 0"


def _retention(config: BrokerConfig) -> str | None:
    fits = config.topic_defaults.retention_ms != 0
    return None if fits else "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"


def _connections_per_ip(config: BrokerConfig) -> str | None:
    if config.max_connections_per_ip or config.connection_limits:
        return None
    return "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set."


def _queued_bytes(config: BrokerConfig) -> str | None:
    """Checks the option only where it is set: the default gives way to larger requests."""
    queued, largest = config.queued_max_request_bytes, config.socket_request_max_bytes
    if "queued.max.request.bytes" not in config.explicit or queued <= 0 or queued >= largest:
        return None
    return f"queued.max.request.bytes {queued} is less than socket.request.max.bytes {largest}"


def _replica_selector(config: BrokerConfig) -> str | None:
    if config.replica_selector_class in (None, "", RACK_AWARE):
        return None
    return (
        f"replica.selector.class is {config.replica_selector_class}; classes of Java are not loaded, but {RACK_AWARE}"
    )


_REQUIREMENTS: Final = (
    _same_id,
    _roll,
    _roll_jitter,
    _retention,
    _cleaner_buffer,
    _connections_per_ip,
    _queued_bytes,
)
_ADDRESSES: Final = (_client_listener, _advertised_names, _inter_broker_name, _routable)
_QUORUM: Final = (
    _no_voter,
    _has_quorum,
    _names_controllers,
    _opens_no_controller,
    _only_controllers,
    _opens_own_controller,
)
_UNBUILT: Final = (_plaintext_only, _own_voter, _plaintext_controllers, _replica_selector)
