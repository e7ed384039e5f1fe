"""Options of one listener: listener.name.<listener>.<option> overrides the broker's option, and
listener.name.<listener>.<mechanism>.<option> sets it for one SASL mechanism of the listener.

Source: org.apache.kafka.common.network.ListenerName, KafkaConfig.valuesWithPrefixOverride.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from broker.config.oauth_options import OAuthOptions
from broker.config.security import ListenerOptions
from protocol.config import Option

LISTENER_PREFIX: Final = "listener.name."

OF_MECHANISM: Final = ("sasl.jaas.config", "connections.max.reauth.ms", *OAuthOptions.OPTIONS)
"""Options that can be set for one mechanism of a listener."""


class ListenerOption(NamedTuple):
    """The parsed name of an option of one listener."""

    listener: str
    """The listener's name in lower case, as option names have it."""
    mechanism: str
    """The mechanism's name in lower case; empty if the option applies to all mechanisms."""
    option: Option


def listener_option(name: str) -> ListenerOption | None:
    """Returns the listener, mechanism and option that a name means; None if it isn't an option of one listener."""
    if not name.startswith(LISTENER_PREFIX):
        return None
    listener, _, rest = name.removeprefix(LISTENER_PREFIX).partition(".")
    option = ListenerOptions.OPTIONS.get(rest)
    if option is not None:
        return ListenerOption(listener, "", option)
    mechanism, _, rest = rest.partition(".")
    option = ListenerOptions.OPTIONS.get(rest) if rest in OF_MECHANISM else None
    return None if option is None or not listener else ListenerOption(listener, mechanism, option)


def listener_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings of single listeners. Raises ConfigError for an invalid value."""
    of_listeners = {}
    for name, text in texts.items():
        if (own := listener_option(name)) is not None:
            own.option.parse(text)
            of_listeners[name] = text
    return of_listeners


def options_of(texts: Mapping[str, str], listener: str, mechanism: str = "") -> ListenerOptions:
    """Returns the options of a listener: its mechanism's own, then the listener's, then the broker's. Raises
    ConfigError.
    """
    layers: dict[str, dict[str, str]] = {"": {}, mechanism.lower(): {}}
    for name, text in texts.items():
        own = listener_option(name)
        if own is not None and own.listener == listener.lower() and own.mechanism in layers:
            layers[own.mechanism][own.option.name] = text
    brokers = {name: text for name, text in texts.items() if name in ListenerOptions.OPTIONS}
    return ListenerOptions.parse({**brokers, **layers[""], **layers[mechanism.lower()]})


def is_of_listener(name: str, listeners: Collection[str]) -> bool:
    """True if a name is an option of one of these listeners, whose names are in lower case."""
    return name.startswith(LISTENER_PREFIX) and name.removeprefix(LISTENER_PREFIX).partition(".")[0] in listeners
