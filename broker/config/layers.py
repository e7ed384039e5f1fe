"""The layers of the broker's configuration: static options, dynamic options of all brokers, and dynamic options of this
broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from broker.config.broker_config import BrokerConfig
from broker.config.listener_options import LISTENER_PREFIX, is_of_listener, listener_option
from broker.config.listener_security import listener_names
from broker.config.throttles import ThrottleOptions
from broker.config.without_effect import WITHOUT_EFFECT
from protocol.config import INT, PER_BROKER, READ_ONLY, ConfigError, ConfigSource, Option

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
NO_THROTTLES: Final = ThrottleOptions()

OF_MECHANISMS: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
"""Options that one SASL mechanism of a listener may have (DynamicBrokerConfig.LISTENER_MECHANISM_CONFIGS)."""


class Synonym(NamedTuple):
    """A setting that can give an option its value."""

    name: str
    value: str | None
    source: ConfigSource


def declared(name: str) -> Option | None:
    """Returns the broker option of this name: static, dynamic only, or dynamic without effect."""
    return BrokerConfig.OPTIONS.get(name) or ThrottleOptions.OPTIONS.get(name) or WITHOUT_EFFECT.get(name)


def settable(name: str) -> Option | None:
    """Returns the option that a setting changes, for the whole broker or for one listener."""
    own = listener_option(name)
    return own.option if own is not None else BrokerConfig.OPTIONS.get(name)


def base_name(name: str) -> str:
    """Returns <option> from listener.name.<listener>.<option>; other names unchanged."""
    return name.split(".", 3)[-1] if name.startswith(LISTENER_PREFIX) and name.count(".") > 2 else name


def own_option(name: str) -> str:
    """Returns the option that listener.name.<listener>.<option>, or listener.name.<listener>.<mechanism>.<option>, sets
    for one listener; other names unchanged."""
    base = base_name(name)
    return base if base == name else next((option for option in OF_MECHANISMS if base.endswith(option)), base)


def described(name: str) -> Option | None:
    """Returns the option whose type and documentation a setting has."""
    return declared(name) or declared(own_option(name))


def is_of_absent_listener(name: str, config: BrokerConfig) -> bool:
    """True if a name is an option of a listener that the configuration doesn't have. It has no effect."""
    return base_name(name) != name and not is_of_listener(name, listener_names(config))


def is_sensitive(name: str) -> bool:
    """True if the value of a broker's option is hidden from all clients: an unknown name may be a password too."""
    option = described(name)
    return option is None or option.type.sensitive


def synonym_names(name: str) -> tuple[str, ...]:
    """Returns the names that can set an option, the strongest first (DynamicBrokerConfig.brokerConfigSynonyms)."""
    option = declared(name)
    if option is not None:
        return option.synonyms or (name,)
    return tuple(dict.fromkeys((name, own_option(name))))


class Layers:
    """The effective configuration of a broker, and its layers; immutable."""

    __slots__ = ("broker", "cluster", "effective", "problems", "static", "throttles")

    def __init__(
        self, static: BrokerConfig, cluster: Mapping[str, str] = NOTHING, broker: Mapping[str, str] = NOTHING
    ) -> None:
        """`cluster` has the dynamic options of all brokers, `broker` this broker's; `problems` gets the invalid options
        with the reasons.
        """
        self.static = static
        self.cluster = cluster
        self.broker = broker
        self.problems: tuple[str, ...] = ()
        self.effective = static
        self.throttles = NO_THROTTLES
        if cluster or broker:
            self._overlay()

    def _overlay(self) -> None:
        problems = []
        usable = []
        for texts, excluded_modes in ((self.cluster, (READ_ONLY, PER_BROKER)), (self.broker, (READ_ONLY,))):
            parsed = {}
            for name, text in texts.items():
                option = settable(name)
                if option is None or option.update in excluded_modes or is_of_absent_listener(name, self.static):
                    continue
                try:
                    option.parse(text)
                    parsed[name] = text
                except ConfigError as error:
                    problems.append(error.message)
            usable.append(parsed)
        self.throttles = self._throttles(problems)
        texts = merged(self.static.explicit, *usable)
        try:
            self.effective = BrokerConfig.parse(texts)
        except ConfigError as error:
            problems.append(error.message)
        self.problems = tuple(problems)

    def _throttles(self, problems: list[str]) -> ThrottleOptions:
        """Returns the options that exist only as dynamic configs; invalid values count as not set."""
        usable = {}
        for name, text in {**self.cluster, **self.broker}.items():
            if name in ThrottleOptions.OPTIONS:
                try:
                    ThrottleOptions.parse({name: text})
                    usable[name] = text
                except ConfigError as error:
                    problems.append(error.message)
        return ThrottleOptions.parse(usable)

    def number(self, name: str) -> int:
        """Returns the value of an option of type int, whether or not it has an effect."""
        inert = WITHOUT_EFFECT.get(name)
        if inert is not None:
            return INT.read(
                (self.broker.get(name) or self.cluster.get(name) or inert.text(inert.default) or "0").strip()
            )
        return int(vars(self.effective)[BrokerConfig.OPTIONS[name].attribute])

    def changed(self, *, cluster: Mapping[str, str] | None = None, broker: Mapping[str, str] | None = None) -> Layers:
        """Returns these layers with other dynamic options."""
        return Layers(
            self.static, self.cluster if cluster is None else cluster, self.broker if broker is None else broker
        )

    def synonyms(self, name: str) -> list[Synonym]:
        """Returns the settings of an option and of its synonyms, the effective one first
        (ConfigHelper.configSynonyms)."""
        settings = list(self._synonyms(synonym_names(name)))
        start = next((index for index, synonym in enumerate(settings) if synonym.name == name), len(settings))
        return settings[start:]

    def _synonyms(self, names: Iterable[str]) -> Iterator[Synonym]:
        names = tuple(names)
        layers = (
            (self.broker, ConfigSource.BROKER),
            (self.cluster, ConfigSource.DEFAULT_BROKER),
            (self.static.explicit, ConfigSource.STATIC_BROKER),
        )
        for texts, source in layers:
            yield from (Synonym(name, texts[name], source) for name in names if name in texts)
        for name in names:
            option = BrokerConfig.OPTIONS.get(name)
            if option is not None and option.default is not None:
                yield Synonym(name, option.text(option.default), ConfigSource.DEFAULT)


def merged(*layers: Mapping[str, str]) -> dict[str, str]:
    """Returns the layers as one; the last is the strongest. A setting replaces its synonyms in weaker layers."""
    texts: dict[str, str] = {}
    for layer in layers:
        for name in layer:
            if base_name(name) == name:
                for other in synonym_names(name):
                    texts.pop(other, None)
        texts.update(layer)
    return texts
