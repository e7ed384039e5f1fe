"""The answers of DescribeConfigs: every option of a resource, its value, its source, and the other options that could
set it.

Source: Kafka's ConfigHelper, as 4.3.1 answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from broker.config.broker_config import BrokerConfig
from broker.config.layers import ConfigSource, Layers, Synonym, base_name, declared, merged
from coordinator.client_metrics import ClientMetricsConfig
from coordinator.group.config import GroupConfig
from protocol.config import READ_ONLY, UNKNOWN_TYPE, Config, ConfigError, Option
from storage.config import LogConfig


class Row(NamedTuple):
    """One option of a resource, as DescribeConfigs returns it."""

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
        """Version 0 knows no sources, only whether the value is the default."""
        return self.source is ConfigSource.DEFAULT


def describe_topic(layers: Layers, own: Mapping[str, str]) -> list[Row]:
    """Returns the options of a topic that has set `own`."""
    values = vars(layers.effective.topic_defaults)
    return [_inheriting(layers, LogConfig, name, own, values, ConfigSource.TOPIC) for name in _names(LogConfig, own)]


def describe_group(layers: Layers, own: Mapping[str, str]) -> list[Row]:
    """Returns the options of a group that has set `own`; there are groups without any members, so every name is one."""
    values = vars(layers.effective.group_config({}))
    return [
        _inheriting(layers, GroupConfig, name, own, values, ConfigSource.GROUP) for name in _names(GroupConfig, own)
    ]


def describe_client_metrics(own: Mapping[str, str]) -> list[Row]:
    """Returns the options of a client metrics subscription."""
    return [_of_subscription(name, own) for name in _names(ClientMetricsConfig, own)]


def describe_broker(layers: Layers) -> list[Row]:
    """Returns the options of this broker."""
    texts = merged(layers.static.explicit, layers.cluster, layers.broker)
    return [
        _of_broker(name, _value(layers, name, texts), layers.synonyms(name)) for name in _names(BrokerConfig, texts)
    ]


def describe_all_brokers(layers: Layers) -> list[Row]:
    """Returns the options that are set for all brokers."""
    return [_of_broker(name, text, _for_all(layers, name)) for name, text in sorted(layers.cluster.items())]


def _for_all(layers: Layers, name: str) -> list[Synonym]:
    return [synonym for synonym in layers.synonyms(name) if synonym.source is ConfigSource.DEFAULT_BROKER]


def _names(kind: type[Config], own: Mapping[str, str]) -> list[str]:
    """Returns the names to describe: an internal option only when it is set, and so a name that no option has."""
    return sorted({name for name, option in kind.OPTIONS.items() if not option.internal} | own.keys())


def _value(layers: Layers, name: str, texts: Mapping[str, str]) -> str | None:
    option = BrokerConfig.OPTIONS.get(name)
    return texts.get(name) if option is None else option.text(vars(layers.effective)[option.attribute])


def _inheriting(
    layers: Layers,
    kind: type[Config],
    name: str,
    own: Mapping[str, str],
    inherited: Mapping[str, object],
    source: ConfigSource,
) -> Row:
    option = kind.OPTIONS.get(name)
    if option is None:
        return _row(name, None, [Synonym(name, None, source)], None, None, read_only=False)
    synonyms = _of_the_broker(layers, option, kind)
    value = option.text(inherited[option.attribute])
    if name in own:
        value = _spelled(option, own[name])
        synonyms.insert(0, Synonym(name, value, source))
    return _row(name, value, synonyms, option, option.doc, read_only=False)


def _of_the_broker(layers: Layers, option: Option, kind: type[Config]) -> list[Synonym]:
    if option.synonyms:
        return layers.synonyms(option.synonyms[0])
    return [] if kind is LogConfig else [Synonym(option.name, option.text(option.default), ConfigSource.DEFAULT)]


def _of_subscription(name: str, own: Mapping[str, str]) -> Row:
    option = ClientMetricsConfig.OPTIONS.get(name)
    text = own.get(name)
    synonyms = [Synonym(name, text, ConfigSource.CLIENT_METRICS)] if text is not None else []
    if option is None:
        return _row(name, None, synonyms, None, None, read_only=False)
    value = option.text(option.default) if text is None else _spelled(option, text)
    return _row(name, value, synonyms, option, option.doc, read_only=False)


def _of_broker(name: str, value: str | None, synonyms: list[Synonym]) -> Row:
    option = declared(name)
    doc = option.doc if option is not None and name in BrokerConfig.OPTIONS else None
    read_only = option is None or option.update == READ_ONLY
    return _row(name, value, synonyms, option or declared(base_name(name)), doc, read_only=read_only)


def _row(
    name: str, value: str | None, synonyms: list[Synonym], option: Option | None, doc: str | None, *, read_only: bool
) -> Row:
    """Makes a row. A name that no option has may hold anything, a password too, so its value is left out."""
    sensitive = option is None or option.type.sensitive
    if sensitive:
        value, synonyms = None, [synonym._replace(value=None) for synonym in synonyms]
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    code = UNKNOWN_TYPE if option is None else option.type.code
    return Row(name, value, read_only, source, sensitive, tuple(synonyms), code, doc)


def _spelled(option: Option, text: str) -> str | None:
    """Returns a text as its value is written, without space around it; a wrong one as it is."""
    try:
        return option.text(option.parse(text))
    except ConfigError:
        return text
