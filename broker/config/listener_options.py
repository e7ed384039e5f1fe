"""Options of one listener: listener.name.<listener>.<option> over the broker's own, and
listener.name.<listener>.<mechanism>.<option> for one SASL mechanism there.

Source: org.apache.kafka.common.network.ListenerName, KafkaConfig.valuesWithPrefixOverride.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from broker.config.oauth_options import OAuthOptions
from broker.config.security import ListenerOptions
from protocol.config import Option

LISTENER_PREFIX: Final = "listener.name."

OF_MECHANISM: Final = ("sasl.jaas.config", "connections.max.reauth.ms", *OAuthOptions.OPTIONS)
"""Options that one mechanism of a listener may have for itself."""


class ListenerOption(NamedTuple):
    """The name of an option of one listener, taken apart."""

    listener: str
    """In lower case, as options have it."""
    mechanism: str
    """In lower case; empty where the option is for all mechanisms."""
    option: Option


def listener_option(name: str) -> ListenerOption | None:
    """Returns which option of which listener a name means; None where it means none."""
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
    """Returns those settings that are of single listeners. Raises ConfigError for a value that is wrong."""
    of_listeners = {}
    for name, text in texts.items():
        if (own := listener_option(name)) is not None:
            own.option.parse(text)
            of_listeners[name] = text
    return of_listeners


def options_of(texts: Mapping[str, str], listener: str, mechanism: str = "") -> ListenerOptions:
    """Returns the options of a listener, out of all settings: its mechanism's own over the listener's over the
    broker's. Raises ConfigError."""
    layers: dict[str, dict[str, str]] = {"": {}, mechanism.lower(): {}}
    for name, text in texts.items():
        own = listener_option(name)
        if own is not None and own.listener == listener.lower() and own.mechanism in layers:
            layers[own.mechanism][own.option.name] = text
    brokers = {name: text for name, text in texts.items() if name in ListenerOptions.OPTIONS}
    return ListenerOptions.parse({**brokers, **layers[""], **layers[mechanism.lower()]})


def unknown_listeners(texts: Iterable[str], listeners: Iterable[str]) -> list[str]:
    """Returns the settings of listeners that are none of these."""
    names = {listener.lower() for listener in listeners}
    parsed = ((name, listener_option(name)) for name in texts)
    return [name for name, own in parsed if own is not None and own.listener not in names]
