"""BrokerConfig: every option of the broker, and the settings derived from several of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import ClassVar, Final, Self

from broker.config.addresses import ADDRESSES, QUORUM, AddressOptions, addresses
from broker.config.authorization import AuthorizationOptions, authorizer_problem
from broker.config.control import ControlAddress, ControlOptions, control_address, control_problem
from broker.config.controller import ControllerOptions
from broker.config.delegation_tokens import DelegationTokenOptions
from broker.config.groups import GroupOptions
from broker.config.listener_options import listener_texts, options_of
from broker.config.listener_security import contradictions
from broker.config.listeners import metrics_address
from broker.config.logs import LogOptions
from broker.config.network import limits_by_host
from broker.config.observability import ObservabilityOptions, telemetry_problem
from broker.config.replication import ReplicationOptions, selector_problem
from broker.config.security import ListenerOptions, SecurityOptions
from broker.config.share import ShareOptions
from broker.config.streams import StreamsOptions
from broker.config.topics import TopicDefaults
from broker.config.transactions import TransactionOptions
from broker.config.zookeeper import ZookeeperOptions
from coordinator.group.config import GroupConfig, clamped, limit_names, outside
from protocol.config import ConfigError
from storage.config import HOUR_MS, LogConfig

MINUTE_MS: Final = 60_000
MIN_DEDUPE_BUFFER_BYTES: Final = 1 << 20  # per cleaner thread; a smaller offset map cleans almost nothing per pass


class BrokerConfig(
    AddressOptions,
    SecurityOptions,
    DelegationTokenOptions,
    ControllerOptions,
    TopicDefaults,
    LogOptions,
    ReplicationOptions,
    GroupOptions,
    StreamsOptions,
    ShareOptions,
    TransactionOptions,
    ObservabilityOptions,
    ControlOptions,
    AuthorizationOptions,
    ZookeeperOptions,
):
    """The broker's options. `BrokerConfig()` listens on 127.0.0.1:9092 and keeps its data in ./data."""

    KIND: ClassVar[str] = "broker"

    data_dirs: tuple[str, ...]
    """Directories of the logs: log.dirs, else log.dir."""
    metadata_dir: str
    """Directory of the metadata log: metadata.log.dir, else the first of data_dirs."""
    connection_limits: Mapping[str, int]
    """max.connections.per.ip.overrides, by host."""
    request_memory_bytes: int
    """queued.max.request.bytes, or the largest request if that is more."""
    request_memory_bytes_per_ip: int  # the part of request_memory_bytes that the connections of one address may use
    metrics_address: tuple[str, int] | None  # host and port of odradek.metrics.listener; None if it isn't set
    control_address: ControlAddress | None  # address of odradek.control.listener; None if it isn't set
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
        """Returns the configuration; see Config.build. node.id and broker.id are one number: if only one is set, the
        other gets its value.
        """
        for given, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
            if given in texts and other not in texts and not _is_to_be_generated(given, texts):
                texts = {**texts, other: texts[given]}
                values = {**values, **cls.values({other: texts[given]})}
        return super().build(values, texts, base, check=check)

    @classmethod
    def values(cls, texts: Mapping[str, str]) -> dict[str, object]:
        """Returns the parsed values; see Config.values. Options of single listeners are checked but have no attribute:
        see `options_of`.
        """
        of_listeners = listener_texts(texts)
        return super().values({name: text for name, text in texts.items() if name not in of_listeners})

    def options_of(self, listener: str, mechanism: str = "") -> ListenerOptions:
        """Returns the options of a listener, or of one SASL mechanism there: the listener's own, and the broker's for
        the rest.
        """
        return options_of(self.explicit, listener, mechanism)

    def _derived(self) -> dict[str, object]:
        data_dirs = tuple(map(os.path.abspath, self.log_dirs or self.log_dir))
        return {
            "data_dirs": data_dirs,
            "metadata_dir": os.path.abspath(self.metadata_log_dir or data_dirs[0]),
            "connection_limits": limits_by_host(self.max_connections_per_ip_overrides),
            "topic_defaults": _topic_defaults(self),
            "metrics_address": metrics_address(self.odradek_metrics_listener),
            "control_address": control_address(self.odradek_control_listener),
            **_request_memory(self),
            **addresses(self),
        }

    def contradictions(self) -> Iterable[ConfigError]:
        """Yields an error for each combination of valid options that is invalid (KafkaConfig.validateValues), and for
        each option that needs a feature that isn't built.
        """
        problems = (problem(self) for problem in (*_REQUIREMENTS, *ADDRESSES, *QUORUM, *_UNBUILT))
        yield from map(ConfigError, filter(None, problems))
        yield from map(ConfigError, contradictions(self))
        yield from outside(self._group_values, self.group_limits, prefix="group.")

    def log_config(self, overrides: Mapping[str, str]) -> LogConfig:
        """Returns a topic's effective config: its own options, and this broker's defaults for the rest. Raises
        ConfigError.
        """
        return LogConfig.parse(overrides, self._log_values) if overrides else self.topic_defaults

    def group_config(self, overrides: Mapping[str, str]) -> GroupConfig:
        """Returns a group's effective config: its own options within this broker's limits, and this broker's for the
        rest.
        """
        limits = self.group_limits
        own = {
            attribute: clamped(value, GROUP_NAMES[attribute], limits) if type(value) is int else value
            for attribute, value in GroupConfig.values(overrides).items()
        }
        return GroupConfig.build(own, overrides, {**GroupConfig.DEFAULTS, **self._group_defaults})

    def check_group(self, overrides: Mapping[str, str]) -> None:
        """Raises ConfigError if a group's own options are invalid or exceed this broker's limits."""
        base = {**GroupConfig.DEFAULTS, **self._group_defaults}
        for problem in GroupConfig.parse(overrides, base).outside(self.group_limits):
            raise problem

    @property
    def generates_id(self) -> bool:
        """True if ZooKeeper generates this broker's id when none is configured (broker.id.generation.enable)."""
        return self.is_broker and self.broker_id_generation_enable and self.zookeeper_connect is not None

    @property
    def group_limits(self) -> dict[str, int]:
        """Returns the values of the options that limit groups' options, by name."""
        return {name: getattr(self, self.OPTIONS[name].attribute) for name in LIMIT_NAMES}

    @property
    def _group_defaults(self) -> dict[str, object]:
        values = {GroupConfig.OPTIONS[name].attribute: value for name, value in self._group_values.items()}
        return {**values, "streams_assignor_name": self.group_streams_assignors[0]}

    @property
    def _group_values(self) -> dict[str, object]:
        return {name: getattr(self, self.OPTIONS[f"group.{name}"].attribute) for name in LIMITED_NAMES}

    @property
    def _log_values(self) -> dict[str, object]:
        values = vars(self.topic_defaults)
        return {attribute: values[attribute] for attribute in LogConfig.DEFAULTS}


GROUP_NAMES: Final = {declared.attribute: name for name, declared in GroupConfig.OPTIONS.items()}
LIMITED_NAMES: Final = tuple(
    name for name, declared in GroupConfig.OPTIONS.items() if f"group.{name}" in declared.synonyms
)
LIMIT_NAMES: Final = tuple(
    limit for name in LIMITED_NAMES for limit in limit_names(name) if limit in BrokerConfig.OPTIONS
)


def _request_memory(config: BrokerConfig) -> dict[str, int]:
    queued = config.queued_max_request_bytes
    total = sys.maxsize if queued <= 0 else max(queued, config.socket_request_max_bytes)
    share = sys.maxsize if queued <= 0 else int(total * config.odradek_queued_request_share_per_ip)
    return {"request_memory_bytes": total, "request_memory_bytes_per_ip": share}


def _topic_defaults(config: BrokerConfig) -> LogConfig:
    """Returns the broker's options under the names of the topic options that they are defaults for
    (KafkaConfig.extractLogConfigMap).
    """
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


def _is_to_be_generated(name: str, texts: Mapping[str, str]) -> bool:
    """True if the option is broker.id=-1, with which Kafka before 4 requested a generated id."""
    enabled = texts.get("broker.id.generation.enable", "").strip().lower() == "true"
    return name == "broker.id" and texts[name].strip() == "-1" and enabled


def _same_id(config: BrokerConfig) -> str | None:
    fits = config.broker_id in (-1, config.node_id)
    return None if fits else "You must set `node.id` to the same value as `broker.id`."


def _nobody_numbers(config: BrokerConfig) -> str | None:
    if "node.id" in config.explicit or "broker.id" not in config.explicit or config.generates_id:
        return None
    return "broker.id -1: only ZooKeeper can generate an id, and zookeeper.connect is not set; set node.id"


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
    """Returns an error only if the option is set: the default grows with the largest request."""
    queued, largest = config.queued_max_request_bytes, config.socket_request_max_bytes
    if "queued.max.request.bytes" not in config.explicit or queued <= 0 or queued >= largest:
        return None
    return f"queued.max.request.bytes {queued} is less than socket.request.max.bytes {largest}"


_REQUIREMENTS: Final = (
    _same_id,
    _nobody_numbers,
    _roll,
    _roll_jitter,
    _retention,
    _cleaner_buffer,
    _connections_per_ip,
    _queued_bytes,
    telemetry_problem,
    control_problem,
)
_UNBUILT: Final = (selector_problem, authorizer_problem)
