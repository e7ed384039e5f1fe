"""The most that a node may register: it is written for good, and every node of the cluster has it in memory.

Kafka has no bounds. These are far beyond what a machine has, and keep a faulty or hostile peer from filling the
metadata log: its record of a registration is a few hundred kilobytes at most.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, Protocol

from protocol.errors import ErrorCode, KafkaError

MAX_TEXT: Final = 255
"""Characters of a host, of which a name in DNS has 253, and of the names of listeners, features and racks."""

MAX_LISTENERS: Final = 64
"""Of a node. Each is a socket; a broker has one for clients, one for brokers and a few for networks."""

MAX_FEATURES: Final = 256
"""Of a node. Kafka has six."""

MAX_DIRECTORIES: Final = 256
"""Log directories of a broker. A large chassis has a hundred disks."""

MAX_NODES: Final = 10_000
"""Registered brokers, and as many controllers. Clusters have hundreds; a peer can draw ids without end."""

PROTOCOLS: Final = range(4)
"""PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL."""


class _ListenerFields(Protocol):
    name: str
    host: str
    port: int
    security_protocol: int


class _FeatureFields(Protocol):
    name: str


def check_node(node_id: int, registered: Collection[int]) -> None:
    """Raises INVALID_REGISTRATION for an id that is none, or that is new and too many."""
    if node_id < 0:
        raise invalid(f"Node id {node_id} in request is negative")
    if node_id not in registered and len(registered) >= MAX_NODES:
        raise invalid(f"{MAX_NODES} nodes are registered; unregister brokers that are gone")


def check_listeners(listeners: Sequence[_ListenerFields]) -> None:
    """Raises INVALID_REGISTRATION for listeners to which other nodes could not connect, or whose record they could not
    read. Kafka answers UNKNOWN_SERVER_ERROR to most of these."""
    if not listeners:
        raise invalid("No listeners specified in request")
    if len(listeners) > MAX_LISTENERS:
        raise invalid(f"{len(listeners)} listeners in request, more than {MAX_LISTENERS}")
    if len({listener.name for listener in listeners}) != len(listeners):
        raise invalid("Duplicate listener name in request")
    for listener in listeners:
        check_text("Listener name", listener.name)
        check_text(f"Host of listener {listener.name}", listener.host)
        if not listener.host or not listener.port or listener.security_protocol not in PROTOCOLS:
            raise invalid(f"Listener {listener.name} has no host, port or known security protocol")


def check_features(features: Sequence[_FeatureFields]) -> None:
    """Raises INVALID_REGISTRATION for more features, or longer names, than there can be."""
    if len(features) > MAX_FEATURES:
        raise invalid(f"{len(features)} features in request, more than {MAX_FEATURES}")
    for feature in features:
        check_text("Feature name", feature.name)


def check_text(what: str, text: str | None) -> None:
    """Raises INVALID_REGISTRATION for a text that is longer than any name."""
    if text is not None and len(text) > MAX_TEXT:
        raise invalid(f"{what} in request has {len(text)} characters, more than {MAX_TEXT}")


def invalid(message: str) -> KafkaError:
    """Returns the rejection of a registration."""
    return KafkaError(ErrorCode.INVALID_REGISTRATION, message)
