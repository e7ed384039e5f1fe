"""Checks the changes of configs that clients request, before they become records.

Source: Kafka's ConfigAdminManager, DynamicBrokerConfig and ControllerConfigurationValidator, texts of errors included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from broker.config.broker_config import BrokerConfig
from broker.config.layers import Layers, base_name, declared, is_of_absent_listener
from broker.config.listener_options import LISTENER_PREFIX
from broker.config.unsupported import LISTENER_ONLY, why_ignored, why_refused
from coordinator.cluster.configs.rules import Checker, FileCheck
from coordinator.telemetry.config import ClientMetricsConfig
from protocol.config import INT, JAVA_SPACE, LIST, PER_BROKER, READ_ONLY, ConfigError
from protocol.errors import ErrorCode, KafkaError

Texts = Mapping[str, str]

NOT_DYNAMIC = "Cannot update these configs dynamically"
ONLY_PER_LISTENER = "These security configs can be dynamically updated only per-listener using the listener prefix"
INVALID_DYNAMIC = (
    "Invalid value org.apache.kafka.common.config.ConfigException: {} for configuration Invalid dynamic configuration"
)
CLEANER_THREADS = "log.cleaner.threads"
THREAD_COUNTS = (
    CLEANER_THREADS,
    "background.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)
"""Options whose value a client can at most double or halve in one change."""
THREADS_REJECTED = "Dynamic thread count update validation failed for {}={}, value should {} the current value {}"
MORE_THAN_DOUBLE, LESS_THAN_HALF = "not be greater than double", "be at least half"
CLEANER_THREADS_REJECTED = {
    MORE_THAN_DOUBLE: "Log cleaner threads cannot be increased to more than double the current value {}",
    LESS_THAN_HALF: "Log cleaner threads cannot be reduced to less than half the current value {}",
}
ONLY_PER_BROKER = "Cannot update these configs at default cluster level, broker id must be specified"

OF_LISTENERS_OF_ALL_BROKERS = frozenset({"max.connections", "max.connection.creation.rate", "num.network.threads"})
"""Options of single listeners that may be set for all brokers (DynamicBrokerConfig.CLUSTER_LEVEL_LISTENER_CONFIGS)."""

CheckStores = Callable[[BrokerConfig, BrokerConfig, Iterable[str]], None]
"""(options before, options after, names of changed options) → raises ConfigError if a new key store or trust store
can't replace the old one.
"""


def broker_checker(layers: Callable[[], Layers], check_stores: CheckStores) -> Checker:
    """Returns the checker of dynamic broker configs: of a broker, or of all brokers if the name is empty.
    `check_stores` reads files, so it runs for this broker only, and after the checker.


    Both raise KafkaError(INVALID_REQUEST), as Kafka does for brokers; other resources get INVALID_CONFIG.
    """

    def check(name: str, configs: Texts) -> FileCheck | None:
        before = layers()
        try:
            after = check_broker(before, configs, per_broker=bool(name))
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, error.message) from None
        return _store_check(before, after, configs, check_stores) if name == str(before.static.node_id) else None

    return check


def group_checker(layers: Callable[[], Layers]) -> Checker:
    """Returns the checker of the configs that a change would give a group. It raises ConfigError."""

    def check(_name: str, configs: Texts) -> None:
        layers().effective.check_group(configs)

    return check


def check_client_metrics(_name: str, configs: Texts) -> None:
    """Checks the configs of a client metrics subscription. Raises ConfigError or KafkaError."""
    for name in configs:
        if name not in ClientMetricsConfig.OPTIONS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
    values = ClientMetricsConfig.values(configs)
    for problem in ClientMetricsConfig.build(values, configs, check=False).contradictions():
        code = ErrorCode.INVALID_REQUEST if problem.name == "interval.ms" else ErrorCode.INVALID_CONFIG
        raise KafkaError(code, problem.message)


def list_defaults() -> dict[str, str | None]:
    """Returns the broker's options with the value that APPEND extends if the option isn't set: a list's default, None
    for other options.
    """
    options = BrokerConfig.OPTIONS.values()
    return {option.name: (option.text(option.default) or "") if option.type is LIST else None for option in options}


def _store_check(before: Layers, after: Layers, configs: Texts, check_stores: CheckStores) -> FileCheck | None:
    """Returns the check of the stores that a change names; None if it changes no option of a listener."""
    changed = [name for name, text in configs.items() if before.broker.get(name) != text]
    changed += before.broker.keys() - configs.keys()
    if not any(name.startswith(LISTENER_PREFIX) for name in changed):
        return None

    def run() -> None:
        try:
            check_stores(before.effective, after.effective, changed)
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, INVALID_DYNAMIC.format(error.message)) from None

    return FileCheck((before.cluster, before.broker, dict(configs)), run)


def check_broker(layers: Layers, configs: Texts, *, per_broker: bool) -> Layers:
    """Returns the layers with other dynamic configs. Raises ConfigError if this broker (`per_broker`), or all brokers,
    can't have them. Checks changed configs only: older values may come from a broker that has more options.
    """
    existing = layers.broker if per_broker else layers.cluster
    new = {name: text for name, text in configs.items() if existing.get(name) != text}
    _raise_for(NOT_DYNAMIC, filter(_is_read_only, new))
    _raise_for(ONLY_PER_LISTENER, (name for name in new if name in LISTENER_ONLY))
    for name, text in new.items():
        option = declared(name) or declared(base_name(name))
        if option is not None and not (option.update == READ_ONLY and is_of_absent_listener(name, layers.static)):
            option.parse(text)
    _check_thread_counts(layers, new)
    if not per_broker:
        _raise_for(ONLY_PER_BROKER, filter(_is_per_broker, new))
    after = layers.changed(broker=configs) if per_broker else layers.changed(cluster=configs)
    if after.problems and after.problems != layers.problems:
        raise ConfigError(f"requirement failed: {after.problems[-1]}")
    return after


def _check_thread_counts(layers: Layers, new: Texts) -> None:
    """Raises ConfigError if a count of threads is more than doubled or halved
    (DynamicThreadPool.validateReconfiguration, LogCleaner.validateReconfiguration).
    """
    for name in THREAD_COUNTS:
        if name in new:
            before, after = layers.number(name), INT.read(new[name].strip(JAVA_SPACE))
            if after > 2 * before:
                raise _threads_rejected(name, after, MORE_THAN_DOUBLE, before)
            if 0 < after < before // 2:
                raise _threads_rejected(name, after, LESS_THAN_HALF, before)


def _threads_rejected(name: str, after: int, problem: str, before: int) -> ConfigError:
    text = THREADS_REJECTED.format(name, after, problem, before)
    if name == CLEANER_THREADS:
        text = CLEANER_THREADS_REJECTED[problem].format(before)
    return ConfigError(INVALID_DYNAMIC.format(text))


def _raise_for(problem: str, names: Iterable[str]) -> None:
    if given := list(names):
        raise ConfigError(f"{problem}: [{', '.join(given)}]", name=given[0])


def _is_read_only(name: str) -> bool:
    option = declared(name)
    if option is not None:
        return option.update == READ_ONLY
    is_inert = why_ignored(name) is not None or why_refused(name) is not None
    return name not in LISTENER_ONLY and base_name(name) == name and is_inert


def _is_per_broker(name: str) -> bool:
    option = declared(name)
    if base_name(name) != name:
        return base_name(name) not in OF_LISTENERS_OF_ALL_BROKERS
    return option is not None and option.update == PER_BROKER
