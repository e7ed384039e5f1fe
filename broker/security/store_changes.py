"""Checks new key stores and trust stores of a listener in use: they must load, and clients and brokers must still be
able to connect.

Source: org.apache.kafka.common.security.ssl.SslFactory.validateReconfiguration, CertificateEntries, SslEngineValidator.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Final

from broker.config import BrokerConfig
from broker.config.listener_options import listener_option
from broker.config.listeners import is_tls
from broker.config.security import ListenerOptions
from broker.security.certificates import client_context, server_context
from broker.security.key_stores import key_store, trust_store
from protocol.config import ConfigError
from protocol.distinguished_name import alternative_names, subject

FAILED: Final = (
    "Validation of dynamic config update of SSLFactory failed: org.apache.kafka.common.config.ConfigException: {}"
)
MAX_FLIGHTS: Final = 10
"""Maximum number of flights in a handshake; three are usual."""


def check_stores(before: BrokerConfig, after: BrokerConfig, names: Iterable[str]) -> None:
    """Raises ConfigError if a listener of this node can't use the changed options `names`. Reads files."""
    own = [option for name in names if (option := listener_option(name)) is not None]
    changed = {option.listener for option in own if option.option.name.startswith("ssl.")}
    for listener in (*after.bound_listeners, *after.bound_controllers):
        if is_tls(listener) and listener.name.lower() in changed:
            try:
                _check(before.options_of(listener.name), after.options_of(listener.name))
                if listener.name == after.inter_broker_listener and after.has_peers:
                    _check_peers(before.options_of(listener.name), after.options_of(listener.name))
            except ConfigError as error:
                raise ConfigError(FAILED.format(error.message), name=error.name) from error


def _check(before: ListenerOptions, after: ListenerOptions) -> None:
    server_context(after)
    if trust_store(before) is None and trust_store(after) is not None:
        name = "ssl.truststore.location"
        problem = "Cannot add SSL truststore to an existing listener for which no truststore was configured."
        raise ConfigError(problem, name=name)
    check_names(certificate_of(before), certificate_of(after), after)


def check_names(old: bytes | None, new: bytes | None, after: ListenerOptions) -> None:
    """Raises ConfigError if the new certificate has another subject, or lacks names that the old certificate has."""
    if old is None or new is None:
        return
    if not after.ssl_allow_dn_changes and subject(old).lower() != subject(new).lower():
        names = f"existing={{DN={subject(old)}}}, new={{DN={subject(new)}}}"
        raise ConfigError(f"Keystore DistinguishedName does not match:  {names}", name="ssl.keystore.location")
    if not after.ssl_allow_san_changes and not alternative_names(old) <= alternative_names(new):
        problem = "Keystore SubjectAltNames do not match: the new certificate lacks names of the existing one"
        raise ConfigError(problem, name="ssl.keystore.location")


def certificate_of(options: ListenerOptions) -> bytes | None:
    """Returns a listener's certificate; None if it can no longer be read."""
    try:
        store = key_store(options)
        return None if store is None else store.certificate
    except ConfigError:
        return None


def _check_peers(before: ListenerOptions, after: ListenerOptions) -> None:
    """Raises ConfigError if a node with the old stores and a node with the new stores couldn't connect, because other
    brokers change theirs later.
    """
    try:
        old_server, old_client = server_context(before), client_context(before)
    except ConfigError:
        return
    new_server, new_client = server_context(after), client_context(after)
    _shake_hands(old_server, new_client)
    _shake_hands(new_server, old_client)


def _shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    client.check_hostname = False
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)]
    try:
        for _ in range(MAX_FLIGHTS):
            for side in tuple(sides):
                try:
                    side.do_handshake()
                    sides.remove(side)
                except ssl.SSLWantReadError:
                    continue
            if not sides:
                return
    except ssl.SSLError as error:
        reason = (error.reason or str(error)).lower().replace("_", " ")
        problem = f"brokers with the existing stores and brokers with the new stores could not connect: {reason}"
        raise ConfigError(problem, name="ssl.keystore.location") from error
    raise ConfigError(
        "a handshake between the existing stores and the new stores does not end", name="ssl.keystore.location"
    )
