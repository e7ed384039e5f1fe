"""Limits on the registration of a node, and on a voter, because every node keeps them in memory for ever.

Kafka has no such limits. They are far above the needs of any machine, and keep a faulty or hostile node from filling
the metadata log: a registration record has a few hundred kilobytes at most.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Sized
from typing import Final, Protocol

from protocol.errors import ErrorCode, KafkaError

MAX_TEXT: Final = 255
"""Maximum number of characters in a host (a DNS name has 253) and in the names of listeners, features and racks."""

MAX_LISTENERS: Final = 64
"""Maximum number of listeners of a node. Each is a socket; a broker has one for clients, one for brokers and a few for
networks.
"""

MAX_FEATURES: Final = 256
"""Maximum number of features of a node. Kafka has six."""

MAX_DIRECTORIES: Final = 256
"""Maximum number of log directories of a broker. A large chassis has a hundred disks."""

MAX_NODES: Final = 10_000
"""Maximum number of registered brokers, and of controllers. Clusters have hundreds; a faulty node could invent ids
without end.
"""

PROTOCOLS: Final = range(4)
"""The valid security protocols: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL."""


class _AddressFields(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


class _ListenerFields(_AddressFields, Protocol):
    @property
    def security_protocol(self) -> int: ...


class _FeatureFields(Protocol):
    name: str


def check_node(node_id: int, registered: Collection[int]) -> None:
    """Raises INVALID_REGISTRATION for a negative id, or for a new id when too many nodes are registered."""
    if node_id < 0:
        raise invalid(f"Node id {node_id} in request is negative")
    if node_id not in registered and len(registered) >= MAX_NODES:
        raise invalid(f"{MAX_NODES} nodes are registered; unregister brokers that are gone")


def check_listeners(listeners: Sequence[_ListenerFields]) -> None:
    """Raises INVALID_REGISTRATION for listeners that other nodes couldn't connect to, or whose record they couldn't
    read. Kafka answers UNKNOWN_SERVER_ERROR to most of these.
    """
    problem = problem_of_addresses(listeners)
    if problem is not None:
        raise invalid(problem)
    for listener in listeners:
        if listener.security_protocol not in PROTOCOLS:
            raise invalid(f"Listener {listener.name} has no known security protocol")


def problem_of_addresses(listeners: Sequence[_AddressFields]) -> str | None:
    """Returns what is wrong with a node's listeners, apart from their security protocols; None if nothing is."""
    if not listeners:
        return "No listeners specified in request"
    problem = problem_of_count(listeners)
    if problem is not None:
        return problem
    if len({listener.name for listener in listeners}) != len(listeners):
        return "Duplicate listener name in request"
    for listener in listeners:
        problem = problem_of_text("Listener name", listener.name) or problem_of_text(
            f"Host of listener {listener.name}", listener.host
        )
        if problem is None and not (listener.host and listener.port):
            problem = f"Listener {listener.name} has no host or port"
        if problem is not None:
            return problem
    return None


def problem_of_count(listeners: Sized) -> str | None:
    """Returns that a node has too many listeners; None if it hasn't."""
    if len(listeners) <= MAX_LISTENERS:
        return None
    return f"{len(listeners)} listeners in request, more than {MAX_LISTENERS}"


def check_features(features: Sequence[_FeatureFields]) -> None:
    """Raises INVALID_REGISTRATION for too many features, or too long names."""
    if len(features) > MAX_FEATURES:
        raise invalid(f"{len(features)} features in request, more than {MAX_FEATURES}")
    for feature in features:
        check_text("Feature name", feature.name)


def check_text(what: str, text: str | None) -> None:
    """Raises INVALID_REGISTRATION for a text that is too long; `what` names it in the message."""
    problem = problem_of_text(what, text)
    if problem is not None:
        raise invalid(problem)


def problem_of_text(what: str, text: str | None) -> str | None:
    """Returns that a text is too long; None if it isn't."""
    if text is None or len(text) <= MAX_TEXT:
        return None
    return f"{what} in request has {len(text)} characters, more than {MAX_TEXT}"


def invalid(message: str) -> KafkaError:
    """Returns the rejection of a registration."""
    return KafkaError(ErrorCode.INVALID_REGISTRATION, message)
