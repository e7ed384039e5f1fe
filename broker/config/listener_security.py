"""The security of listeners: the protocol of each, the SASL mechanisms that it offers, and the combinations of options
that are invalid.

Source: KafkaConfig.validateValues, SaslChannelBuilder, JaasContext.loadServerContext.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from broker.config.listener_options import LISTENER_PREFIX, is_of_listener, listener_option
from broker.config.listeners import ListenerAddress, is_sasl, protocol_map
from broker.config.security import DEFAULT_PRINCIPAL_BUILDER, ListenerOptions
from protocol.config import ConfigError
from protocol.lazy import lazy

if TYPE_CHECKING:
    from broker.config import jaas, kerberos, oauth
else:  # with the first listener with SASL
    jaas = lazy("broker.config.jaas")
    kerberos = lazy("broker.config.kerberos")
    oauth = lazy("broker.config.oauth")

PLAIN: Final = "PLAIN"
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
OAUTHBEARER: Final = "OAUTHBEARER"
GSSAPI: Final = "GSSAPI"
MECHANISMS: Final = (PLAIN, *SCRAM, OAUTHBEARER, GSSAPI)
"""The SASL mechanisms by which clients can authenticate."""

PEER_MECHANISMS: Final = (PLAIN, *SCRAM)
"""The SASL mechanisms by which this node can authenticate to other nodes."""

BY_PEERS: Final = ", ".join(PEER_MECHANISMS)


class SecuredConfig(Protocol):
    """A configuration with options of single listeners."""

    def options_of(self, listener: str, mechanism: str = "") -> ListenerOptions: ...


class SecuredAddresses(SecuredConfig, Protocol):
    """A configuration that also has the listeners, and the addresses of other nodes."""

    @property
    def explicit(self) -> Mapping[str, str]: ...
    @property
    def bound_listeners(self) -> tuple[ListenerAddress, ...]: ...
    @property
    def bound_controllers(self) -> tuple[ListenerAddress, ...]: ...
    @property
    def controller_listener_names(self) -> tuple[str, ...]: ...
    @property
    def listener_security_protocol_map(self) -> str: ...
    @property
    def inter_broker_listener(self) -> str: ...
    @property
    def has_peers(self) -> bool: ...
    @property
    def has_remote_controllers(self) -> bool: ...
    @property
    def is_broker(self) -> bool: ...


class MechanismOptions(NamedTuple):
    """A SASL mechanism of a listener."""

    name: str
    login: jaas.LoginModule | None
    """The mechanism's login module; None if the metadata log has its users."""
    max_reauth_ms: int
    """Time until a client that authenticated with this mechanism must authenticate again; 0 is no limit."""
    tokens: oauth.TokenOptions | None = None
    """The rules for validating tokens; OAUTHBEARER only."""
    tickets: kerberos.TicketOptions | None = None
    """The rules for validating Kerberos tickets; GSSAPI only."""


def mechanisms_of(config: SecuredConfig, listener: str) -> tuple[MechanismOptions, ...]:
    """Returns the mechanisms that a listener offers. Raises ConfigError."""
    enabled = config.options_of(listener).sasl_enabled_mechanisms
    return tuple(_mechanism(config, listener, mechanism.upper()) for mechanism in enabled)


def _mechanism(config: SecuredConfig, listener: str, mechanism: str) -> MechanismOptions:
    name = "sasl.enabled.mechanisms"
    if mechanism not in MECHANISMS:
        problem = f"{name}: listener {listener} can't offer {mechanism}; supported are {', '.join(MECHANISMS)}"
        raise ConfigError(problem, name=name)
    own = config.options_of(listener, mechanism)
    module = login_module(own, listener, mechanism)
    options = MechanismOptions(mechanism, module, own.connections_max_reauth_ms)
    if mechanism == OAUTHBEARER:
        return options._replace(tokens=oauth.token_options(own, module))
    check_handler(own, mechanism)
    if mechanism == GSSAPI:
        return options._replace(tickets=kerberos.ticket_options(jaas_option(listener, mechanism), own, module))
    return options


def check_handler(own: ListenerOptions, mechanism: str) -> None:
    """Raises ConfigError if a Java class is configured to authenticate clients."""
    name, handler = "sasl.server.callback.handler.class", own.sasl_server_callback_handler_class
    if handler is not None:
        problem = (
            f"{handler} of {mechanism}: Java classes are not loaded; without its checks, clients that it rejects "
            "would get in"
        )
        raise ConfigError(f"{name}: {problem}", name=name)


def jaas_option(listener: str, mechanism: str) -> str:
    """Returns the name of the option with the login module of a listener's mechanism."""
    return f"{LISTENER_PREFIX}{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"


def login_module(own: ListenerOptions, listener: str, mechanism: str) -> jaas.LoginModule | None:
    """Returns the login module of a listener's mechanism. Raises ConfigError.

    Only PLAIN requires the option here: SCRAM's users are in the metadata log, OAUTHBEARER's in their tokens, and
    GSSAPI raises errors of its own.
    """
    name = jaas_option(listener, mechanism)
    if own.sasl_jaas_config is None:
        if mechanism != PLAIN:
            return None
        problem = f'set it to {jaas.PLAIN_MODULE} required user_<name>="<password>"; without it no user can log in'
        raise ConfigError(f"{name}: {problem}", name=name)
    module = jaas.parse_jaas(name, own.sasl_jaas_config)
    if mechanism == PLAIN and module.name != jaas.PLAIN_MODULE:
        raise ConfigError(
            f"{name}: the login module is {module.name}; PLAIN supports only {jaas.PLAIN_MODULE}", name=name
        )
    return module


def listener_names(config: SecuredAddresses) -> frozenset[str]:
    """Returns the names, in lower case, of all listeners that the configuration knows of."""
    bound = (listener.name for listener in (*config.bound_listeners, *config.bound_controllers))
    names = (*bound, *protocol_map(config.listener_security_protocol_map), *config.controller_listener_names)
    return frozenset(map(str.lower, names))


def contradictions(config: SecuredAddresses) -> Iterator[str]:
    """Yields an error for each invalid combination."""
    bound = (*config.bound_listeners, *config.bound_controllers)
    names = listener_names(config)
    for name in config.explicit:
        if listener_option(name) is not None and not is_of_listener(name, names):
            yield f"{name}: unknown listener; the listeners are {', '.join(listener.name for listener in bound)}"
    for listener in bound:
        try:
            yield from _listener_problems(listener, config)
        except ConfigError as error:
            yield error.message
    yield from _peer_problems(config)


def _listener_problems(listener: ListenerAddress, secured: SecuredConfig) -> Iterator[str]:
    builder = secured.options_of(listener.name).principal_builder_class
    if builder != DEFAULT_PRINCIPAL_BUILDER:
        yield (
            f"principal.builder.class is {builder}; Java classes are not loaded, only {DEFAULT_PRINCIPAL_BUILDER} is "
            "supported"
        )
    if is_sasl(listener):
        mechanisms_of(secured, listener.name)


class PeerListener(NamedTuple):
    """The listener of other nodes that this node connects to."""

    name: str
    protocol: str
    mechanism: str
    """The SASL mechanism by which this node authenticates there, if the protocol is SASL."""
    option: str
    """The option that sets the mechanism."""

    @property
    def is_sasl(self) -> bool:
        return self.protocol.startswith("SASL_")

    @property
    def is_tls(self) -> bool:
        return self.protocol.endswith("SSL")


def inter_broker_listener(config: SecuredAddresses) -> PeerListener:
    """Returns the listener at which this broker connects to other brokers."""
    mechanism = config.options_of(config.inter_broker_listener).sasl_mechanism_inter_broker_protocol
    protocol = protocol_map(config.listener_security_protocol_map).get(config.inter_broker_listener, "PLAINTEXT")
    return PeerListener(
        config.inter_broker_listener, protocol, mechanism.upper(), "sasl.mechanism.inter.broker.protocol"
    )


def controller_listener(config: SecuredAddresses) -> PeerListener:
    """Returns the listener at which this broker connects to controllers: the first in controller.listener.names."""
    name = config.controller_listener_names[0].upper()
    protocol = protocol_map(config.listener_security_protocol_map).get(name, "PLAINTEXT")
    mechanism = config.options_of(name).sasl_mechanism_controller_protocol
    return PeerListener(name, protocol, mechanism.upper(), "sasl.mechanism.controller.protocol")


def login_of(config: SecuredConfig, listener: PeerListener) -> tuple[str, str]:
    """Returns the name and the password with which this node authenticates to other nodes. Raises ConfigError."""
    name, mechanism, option = listener.name, listener.mechanism, listener.option
    if mechanism not in PEER_MECHANISMS:
        problem = (
            f"{option}: listener {name} uses {mechanism}, but this node can authenticate to other nodes only by "
            f"{BY_PEERS}"
        )
        raise ConfigError(problem, name=option)
    module = login_module(config.options_of(name, mechanism), name, mechanism)
    login = None if module is None else module.login
    if login is None:
        own_option = jaas_option(name, mechanism)
        problem = "username and password are missing, with which this node authenticates to other nodes"
        raise ConfigError(f"{own_option}: {problem}", name=own_option)
    return login


def _peer_problems(config: SecuredAddresses) -> Iterator[str]:
    """Yields the problems that would keep this node from connecting to other nodes."""
    listeners = [inter_broker_listener(config)] if config.has_peers and config.is_broker else []
    if config.has_remote_controllers and config.controller_listener_names:
        listeners.append(controller_listener(config))
    for listener in listeners:
        if listener.is_sasl:
            try:
                login_of(config, listener)
            except ConfigError as error:
                yield error.message
