"""The configs that resources may have, and the effective configs of a topic.

Topic configs are storage's LogConfig. Brokers, groups and client metrics have their options in other rooms, which give
a checker for each; without one, values of that type are taken as they are.
Source: Kafka's ControllerConfigurationValidator and KafkaConfigSchema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from coordinator.cluster.configs.resource import DEFAULT_BROKER, ConfigResource, ResourceType
from coordinator.cluster.image import NO_CONFIGS, Image
from coordinator.cluster.topics import names
from protocol.config import JAVA_SPACE, LIST, LONG, ConfigError, ConfigSource, Option
from protocol.errors import ErrorCode, KafkaError
from protocol.numbers import whole_number
from storage.config import LogConfig

Texts = Mapping[str, str]
Checker = Callable[[str, Texts], None]
"""(resource's name, all its configs) → raises ConfigError or KafkaError."""

MAX_INT32 = (1 << 31) - 1


class ConfigEntry(NamedTuple):
    """One config's value in force, as text, and its source."""

    name: str
    value: str | None
    source: ConfigSource


MS_PER_UNIT = {"hours": 3_600_000, "minutes": 60_000}
"""Broker options in other units than the topic's option that they stand behind, by the last word of their names."""


def _converted(option: Option, synonym: str, text: str) -> str:
    """A broker option's text as the topic's option has it: `log.retention.hours=2` is `retention.ms=7200000`."""
    factor = MS_PER_UNIT.get(synonym.rpartition(".")[2])
    if factor is None or not option.name.endswith(".ms"):
        return text
    count = LONG.read(text.strip(JAVA_SPACE))
    return str(count * factor) if count >= 0 else text


class ConfigRules:
    """The rules of this node: its checkers, and the static configs that topics fall back to."""

    def __init__(
        self,
        node_id: int,
        static_configs: Texts = NO_CONFIGS,
        checkers: Mapping[ResourceType, Checker] | None = None,
        lists: Mapping[ResourceType, Mapping[str, str | None]] | None = None,
    ) -> None:
        """`lists` has the options of resources other than topics: the texts of the defaults of those that are lists,
        None for the others."""
        self._this_broker = ConfigResource(ResourceType.BROKER, str(node_id))
        self._static_configs = static_configs
        self._checkers = checkers or {}
        self._lists = lists or {}

    def check_name(self, resource: ConfigResource) -> None:
        """Raises KafkaError for a resource that has no configs."""
        rule = NAME_RULES.get(resource.type)
        if rule is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.type.name}")
        rule(resource.name)

    def check(self, resource: ConfigResource, configs: Texts) -> None:
        """Raises KafkaError when the resource may not have these configs, or is no resource that has any."""
        self.check_name(resource)
        try:
            if resource.type is ResourceType.TOPIC:
                LogConfig.parse(configs)
            elif resource.type in self._checkers:
                self._checkers[resource.type](resource.name, configs)
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, error.message) from None

    def check_fallbacks(self, configs: Texts) -> None:
        """Raises KafkaError(INVALID_CONFIG) for configs of all brokers that no topic could fall back to: decisions rest
        on them."""
        for option in LogConfig.OPTIONS.values():
            for synonym in option.synonyms:
                if synonym in configs:
                    _check_fallback(option, synonym, configs[synonym])

    def list_default(self, kind: ResourceType, name: str) -> str | None:
        """The default text of an option that is a list, to append to; None for any other option."""
        if kind is not ResourceType.TOPIC:
            return self._lists.get(kind, {}).get(name)
        option = LogConfig.OPTIONS.get(name)
        return option.text(option.default) if option is not None and option.type is LIST else None

    def has_broker_option(self, name: str) -> bool:
        return name in self._lists.get(ResourceType.BROKER, {})

    def effective_topic_configs(self, own: Texts, image: Image) -> list[ConfigEntry]:
        """Every config of a topic, by name: its own come before this broker's, all brokers', static ones, defaults.
        Internal configs are among them only if the topic sets them (KafkaConfigSchema.resolveEffectiveTopicConfigs)."""
        layers = self._layers(image)
        options = sorted(LogConfig.OPTIONS.values(), key=lambda option: option.name)
        return [_effective(option, own, layers) for option in options if not option.internal or option.name in own]

    def effective_topic_config(self, name: str, own: Texts, image: Image) -> str:
        """The text in force of one topic config, empty for one without a value."""
        option = LogConfig.OPTIONS.get(name)
        return "" if option is None else _effective(option, own, self._layers(image)).value or ""

    def _layers(self, image: Image) -> tuple[tuple[Texts, ConfigSource], ...]:
        return (
            (image.configs(self._this_broker), ConfigSource.BROKER),
            (image.configs(DEFAULT_BROKER), ConfigSource.DEFAULT_BROKER),
            (self._static_configs, ConfigSource.STATIC_BROKER),
        )


def _check_fallback(option: Option, synonym: str, text: str) -> None:
    try:
        option.parse(_converted(option, synonym, text))
    except (ConfigError, ValueError) as error:
        message = f"Invalid value {text} for configuration {synonym}: {error}"
        raise KafkaError(ErrorCode.INVALID_CONFIG, message) from None


def _effective(option: Option, own: Texts, layers: tuple[tuple[Texts, ConfigSource], ...]) -> ConfigEntry:
    if option.name in own:
        return ConfigEntry(option.name, own[option.name], ConfigSource.TOPIC)
    return next(_fallbacks(option, layers), ConfigEntry(option.name, option.text(option.default), ConfigSource.DEFAULT))


def _fallbacks(option: Option, layers: tuple[tuple[Texts, ConfigSource], ...]) -> Iterator[ConfigEntry]:
    for texts, source in layers:
        for synonym in option.synonyms:
            if synonym in texts:
                yield ConfigEntry(option.name, _converted(option, synonym, texts[synonym]), source)


def _topic_name(name: str) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    names.validate(name)


def _broker_name(name: str) -> None:
    if not name:
        return
    broker_id = whole_number(name)
    if broker_id is None or not -MAX_INT32 <= broker_id <= MAX_INT32:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number.")
    if broker_id < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")


def _group_name(name: str) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")


def _client_metrics_name(name: str) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")


NAME_RULES: dict[ResourceType, Callable[[str], None]] = {
    ResourceType.TOPIC: _topic_name,
    ResourceType.BROKER: _broker_name,
    ResourceType.GROUP: _group_name,
    ResourceType.CLIENT_METRICS: _client_metrics_name,
}
