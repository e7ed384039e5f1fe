"""Describes every option of a resource for DescribeConfigs: its value, its source, and its synonyms.

Source: Kafka's ConfigHelper, as 4.3.1 answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from broker.config.broker_config import BrokerConfig
from broker.config.layers import Layers, Synonym, declared, described, merged
from coordinator.group.config import GroupConfig
from coordinator.telemetry.config import ClientMetricsConfig
from protocol.config import READ_ONLY, UNKNOWN_TYPE, Config, ConfigError, ConfigSource, Option
from storage.config import LogConfig


class DescribedConfig(NamedTuple):
    """One config of a resource, as DescribeConfigs returns it."""

    name: str
    value: str | None
    read_only: bool
    source: ConfigSource
    sensitive: bool
    synonyms: tuple[Synonym, ...]
    type: int
    doc: str | None

    @property
    def is_default(self) -> bool:
        """True if the option is not set anywhere. Version 0 returns only this about the source."""
        return self.source is ConfigSource.DEFAULT


def describe_topic(layers: Layers, own: Mapping[str, str]) -> list[DescribedConfig]:
    """Returns the options of a topic whose own options are `own`."""
    values = vars(layers.effective.topic_defaults)
    return [
        _inherited_config(layers, LogConfig, name, own, values, ConfigSource.TOPIC)
        for name in _described_names(LogConfig, own)
    ]


def describe_group(layers: Layers, own: Mapping[str, str]) -> list[DescribedConfig]:
    """Returns the options of a group whose own options are `own`. Every name is a group's, because a group needs no
    members.
    """
    values = vars(layers.effective.group_config({}))
    return [
        _inherited_config(layers, GroupConfig, name, own, values, ConfigSource.GROUP)
        for name in _described_names(GroupConfig, own)
    ]


def describe_client_metrics(own: Mapping[str, str]) -> list[DescribedConfig]:
    """Returns the options of a client metrics subscription."""
    return [_subscription_config(name, own) for name in _described_names(ClientMetricsConfig, own)]


def describe_loggers(levels: Mapping[str, str]) -> list[DescribedConfig]:
    """Returns the log levels of loggers, as `kafka-configs --entity-type broker-loggers` lists them (KIP-412)."""
    source = ConfigSource.BROKER_LOGGER
    return [
        DescribedConfig(name, level, False, source, False, (), UNKNOWN_TYPE, None) for name, level in levels.items()
    ]


def describe_broker(layers: Layers) -> list[DescribedConfig]:
    """Returns the options of this broker."""
    texts = merged(layers.static.explicit, layers.cluster, layers.broker)
    return [
        _broker_config(name, _effective_value(layers, name, texts), layers.synonyms(name))
        for name in _described_names(BrokerConfig, texts)
    ]


def describe_all_brokers(layers: Layers) -> list[DescribedConfig]:
    """Returns the options that are set for all brokers."""
    return [
        _broker_config(name, text, _synonyms_of_all_brokers(layers, name))
        for name, text in sorted(layers.cluster.items())
    ]


def _synonyms_of_all_brokers(layers: Layers, name: str) -> list[Synonym]:
    return [synonym for synonym in layers.synonyms(name) if synonym.source is ConfigSource.DEFAULT_BROKER]


def _described_names(kind: type[Config], own: Mapping[str, str]) -> list[str]:
    """Returns the names to describe. They include internal options and unknown names only if these are set."""
    return sorted({name for name, option in kind.OPTIONS.items() if not option.internal} | own.keys())


def _effective_value(layers: Layers, name: str, texts: Mapping[str, str]) -> str | None:
    option = BrokerConfig.OPTIONS.get(name)
    return texts.get(name) if option is None else option.text(vars(layers.effective)[option.attribute])


def _inherited_config(
    layers: Layers,
    kind: type[Config],
    name: str,
    own: Mapping[str, str],
    inherited: Mapping[str, object],
    source: ConfigSource,
) -> DescribedConfig:
    option = kind.OPTIONS.get(name)
    if option is None:
        return _config(name, None, [Synonym(name, None, source)], None, None, read_only=False)
    synonyms = _broker_synonyms(layers, option, kind)
    value = option.text(inherited[option.attribute])
    if name in own:
        value = _canonical(option, own[name])
        synonyms.insert(0, Synonym(name, value, source))
    return _config(name, value, synonyms, option, option.doc, read_only=False)


def _broker_synonyms(layers: Layers, option: Option, kind: type[Config]) -> list[Synonym]:
    if option.synonyms:
        return layers.synonyms(option.synonyms[0])
    return [] if kind is LogConfig else [Synonym(option.name, option.text(option.default), ConfigSource.DEFAULT)]


def _subscription_config(name: str, own: Mapping[str, str]) -> DescribedConfig:
    option = ClientMetricsConfig.OPTIONS.get(name)
    text = own.get(name)
    synonyms = [Synonym(name, text, ConfigSource.CLIENT_METRICS)] if text is not None else []
    if option is None:
        return _config(name, None, synonyms, None, None, read_only=False)
    value = option.text(option.default) if text is None else _canonical(option, text)
    return _config(name, value, synonyms, option, option.doc, read_only=False)


def _broker_config(name: str, value: str | None, synonyms: list[Synonym]) -> DescribedConfig:
    option = declared(name)
    doc = option.doc if option is not None and name in BrokerConfig.OPTIONS else None
    read_only = option is None or option.update == READ_ONLY
    return _config(name, value, synonyms, described(name), doc, read_only=read_only)


def _config(
    name: str, value: str | None, synonyms: list[Synonym], option: Option | None, doc: str | None, *, read_only: bool
) -> DescribedConfig:
    """Returns the config. The value is left out if it is sensitive. The value of an unknown name counts as sensitive,
    because it may be a password."""
    sensitive = option is None or option.type.sensitive
    if sensitive:
        value, synonyms = None, [synonym._replace(value=None) for synonym in synonyms]
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    code = UNKNOWN_TYPE if option is None else option.type.code
    return DescribedConfig(name, value, read_only, source, sensitive, tuple(synonyms), code, doc)


def _canonical(option: Option, text: str) -> str | None:
    """Returns the value in its canonical spelling, or unchanged if the option can't parse it."""
    try:
        return option.text(option.parse(text))
    except ConfigError:
        return text
