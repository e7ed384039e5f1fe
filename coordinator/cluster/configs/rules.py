"""The configs that resources may have, and the effective configs of a topic.

Topic configs are the LogConfig of storage. The options of brokers, groups and client metrics are declared elsewhere,
and come with a checker for each type; without a checker, values are not checked.

Source: Kafka's ControllerConfigurationValidator and KafkaConfigSchema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from typing import NamedTuple

from coordinator.cluster.configs.resource import DEFAULT_BROKER, ConfigResource, ResourceType
from coordinator.cluster.image import NO_CONFIGS, Image
from coordinator.cluster.topics import names
from coordinator.engine.errors import Undecided
from protocol.config import JAVA_SPACE, LIST, LONG, ConfigError, ConfigSource, Option
from protocol.errors import ErrorCode, KafkaError
from protocol.numbers import whole_number
from storage.config import LogConfig

Texts = Mapping[str, str]

MAX_VALUE_LENGTH = 0x7FFF
"""Maximum length of a config's value: the older format of the record has a 16-bit length."""


class FileCheck(NamedTuple):
    """A check of configs that reads files, which no decision does."""

    subject: object
    """The input of a check; equal for two checks of the same configs over the same configuration."""
    run: Callable[[], None]
    """Raises KafkaError if the resource may not have these configs."""


Checker = Callable[[str, Texts], FileCheck | None]
"""(resource's name, all its configs) → raises ConfigError or KafkaError; returns the check of files that must still
run, or None."""


class FilesUnchecked(Undecided):
    """A decision depends on a check of files: it is made again with the check's verdict."""

    def __init__(self, check: FileCheck) -> None:
        super().__init__("files must be read before this decision")
        self.check = check


class FileVerdict(NamedTuple):
    """The verdict on the subject of a FileCheck."""

    subject: object
    rejection: KafkaError | None


MAX_INT32 = (1 << 31) - 1


class ConfigEntry(NamedTuple):
    """The effective value of a config, as text, and its source."""

    name: str
    value: str | None
    source: ConfigSource


MS_PER_UNIT = {"hours": 3_600_000, "minutes": 60_000}
"""Milliseconds by the last word of broker options whose unit differs from the topic option that they are defaults
for.
"""


def _converted(option: Option, synonym: str, text: str) -> str:
    """Returns the text of a broker option in the unit of the topic's option: `log.retention.hours=2` is
    `retention.ms=7200000`.
    """
    factor = MS_PER_UNIT.get(synonym.rpartition(".")[2])
    if factor is None or not option.name.endswith(".ms"):
        return text
    count = LONG.read(text.strip(JAVA_SPACE))
    return str(count * factor) if count >= 0 else text


class ConfigRules:
    """The rules of this node: its checkers, and the static configs that are the defaults of topics."""

    def __init__(
        self,
        node_id: int,
        static_configs: Texts = NO_CONFIGS,
        checkers: Mapping[ResourceType, Checker] | None = None,
        lists: Mapping[ResourceType, Mapping[str, str | None]] | None = None,
        verdict: FileVerdict | None = None,
    ) -> None:
        """`lists` has the options of resources other than topics, with the default value as text if the option is a
        list, otherwise None.
        """
        self._this_broker = ConfigResource(ResourceType.BROKER, str(node_id))
        self._static_configs = static_configs
        self._checkers = checkers or {}
        self._lists = lists or {}
        self._verdict = verdict

    def knowing(self, verdict: FileVerdict) -> ConfigRules:
        """Returns these rules with a verdict on files, for one request: the files may change after it."""
        rules = copy(self)
        rules._verdict = verdict
        return rules

    def check_name(self, resource: ConfigResource) -> None:
        """Raises KafkaError for a resource that can't have configs."""
        rule = NAME_RULES.get(resource.type)
        if rule is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.type.name}")
        rule(resource.name)

    def check(self, resource: ConfigResource, configs: Texts) -> None:
        """Raises KafkaError if the resource may not have these configs, or can't have configs at all."""
        self.check_name(resource)
        try:
            if resource.type is ResourceType.TOPIC:
                LogConfig.parse(configs)
            elif resource.type in self._checkers:
                self._check_files(self._checkers[resource.type](resource.name, configs))
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, error.message) from None

    def _check_files(self, check: FileCheck | None) -> None:
        if check is None:
            return
        verdict = self._verdict
        if verdict is None or verdict.subject != check.subject:
            raise FilesUnchecked(check)
        if verdict.rejection is not None:
            raise verdict.rejection

    def check_fallbacks(self, configs: Texts) -> None:
        """Raises KafkaError(INVALID_CONFIG) if configs of all brokers are invalid as defaults of topic options, because
        decisions depend on them.
        """
        for option in LogConfig.OPTIONS.values():
            for synonym in option.synonyms:
                if synonym in configs:
                    _check_fallback(option, synonym, configs[synonym])

    def list_default(self, kind: ResourceType, name: str) -> str | None:
        """Returns the default of a list option as text, which APPEND extends; None for any other option."""
        if kind is not ResourceType.TOPIC:
            return self._lists.get(kind, {}).get(name)
        option = LogConfig.OPTIONS.get(name)
        return option.text(option.default) if option is not None and option.type is LIST else None

    def has_broker_option(self, name: str) -> bool:
        return name in self._lists.get(ResourceType.BROKER, {})

    def effective_topic_configs(self, own: Texts, image: Image) -> list[ConfigEntry]:
        """Returns every config of a topic, by name. The precedence is: the topic's own, this broker's, all brokers',
        static, default. Internal configs are included only if the topic sets them
        (KafkaConfigSchema.resolveEffectiveTopicConfigs).
        """
        layers = self._layers(image)
        options = sorted(LogConfig.OPTIONS.values(), key=lambda option: option.name)
        return [_effective(option, own, layers) for option in options if not option.internal or option.name in own]

    def effective_topic_config(self, name: str, own: Texts, image: Image) -> str:
        """Returns the effective text of a topic config; an empty text if it has no value."""
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


def check_length(value: str | None) -> None:
    """Raises INVALID_CONFIG for a value that is longer than MAX_VALUE_LENGTH, before anything else looks at it."""
    if value is not None and len(value) > MAX_VALUE_LENGTH:
        message = (
            "The configuration value cannot be added because it exceeds the maximum value size of "
            f"{MAX_VALUE_LENGTH} bytes."
        )
        raise KafkaError(ErrorCode.INVALID_CONFIG, message)
