"""The security of listeners: which protocol each speaks, by which mechanisms clients authenticate there, and what does
not fit together.

Source: KafkaConfig.validateValues, SaslChannelBuilder, JaasContext.loadServerContext.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from broker.config.listener_options import LISTENER_PREFIX, unknown_listeners
from broker.config.listeners import ListenerAddress, is_sasl, protocol_map
from broker.config.security import DEFAULT_PRINCIPAL_BUILDER, ListenerOptions
from protocol.config import ConfigError

if TYPE_CHECKING:
    from broker.config.jaas import LoginModule
    from broker.config.kerberos import TicketOptions
    from broker.config.oauth import TokenOptions

PLAIN: Final = "PLAIN"
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
OAUTHBEARER: Final = "OAUTHBEARER"
GSSAPI: Final = "GSSAPI"
MECHANISMS: Final = (PLAIN, *SCRAM, OAUTHBEARER, GSSAPI)
"""The SASL mechanisms by which clients can authenticate."""

PEER_MECHANISMS: Final = (PLAIN, *SCRAM)
"""Those by which this node can authenticate to others."""

BY_PEERS: Final = ", ".join(PEER_MECHANISMS)


class SecuredConfig(Protocol):
    """A configuration with options of single listeners."""

    def options_of(self, listener: str, mechanism: str = "") -> ListenerOptions: ...


class SecuredAddresses(SecuredConfig, Protocol):
    """The same, with its listeners and how others are reached."""

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
    login: LoginModule | None
    """None of a mechanism whose users are in the metadata log."""
    max_reauth_ms: int
    """How long a session lasts that began with it; 0 is no limit."""
    tokens: TokenOptions | None = None
    """How tokens are validated, of OAUTHBEARER alone."""
    tickets: TicketOptions | None = None
    """How tickets are taken, of GSSAPI alone."""


def mechanisms_of(config: SecuredConfig, listener: str) -> tuple[MechanismOptions, ...]:
    """Returns the mechanisms that a listener offers. Raises ConfigError."""
    enabled = config.options_of(listener).sasl_enabled_mechanisms
    return tuple(_mechanism(config, listener, mechanism.upper()) for mechanism in enabled)


def _mechanism(config: SecuredConfig, listener: str, mechanism: str) -> MechanismOptions:
    name = "sasl.enabled.mechanisms"
    if mechanism not in MECHANISMS:
        problem = f"{name}: listener {listener} is to offer {mechanism}; built are {', '.join(MECHANISMS)}"
        raise ConfigError(problem, name=name)
    own = config.options_of(listener, mechanism)
    module = login_module(own, listener, mechanism)
    options = MechanismOptions(mechanism, module, own.connections_max_reauth_ms)
    if mechanism == OAUTHBEARER:
        from broker.config.oauth import token_options  # no start without tokens needs it

        return options._replace(tokens=token_options(own, module))
    check_handler(own, mechanism)
    if mechanism == GSSAPI:
        from broker.config.kerberos import ticket_options  # nor one without tickets

        return options._replace(tickets=ticket_options(jaas_option(listener, mechanism), own, module))
    return options


def check_handler(own: ListenerOptions, mechanism: str) -> None:
    """Raises ConfigError where a class of Java is to say who may log in."""
    name, handler = "sasl.server.callback.handler.class", own.sasl_server_callback_handler_class
    if handler is not None:
        problem = f"{handler} of {mechanism}: classes of Java are not loaded, and others would be let in than it says"
        raise ConfigError(f"{name}: {problem}", name=name)


def jaas_option(listener: str, mechanism: str) -> str:
    """Returns the name of the option that has the login module of a listener's mechanism."""
    return f"{LISTENER_PREFIX}{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"


def login_module(own: ListenerOptions, listener: str, mechanism: str) -> LoginModule | None:
    """Returns the login module of a listener's mechanism. Only PLAIN asks for it here: users of SCRAM and OAUTHBEARER
    are in the metadata log and in tokens, and GSSAPI has words of its own. Raises ConfigError."""
    from broker.config.jaas import PLAIN_MODULE, parse_jaas  # no start without SASL needs it

    name = jaas_option(listener, mechanism)
    if own.sasl_jaas_config is None:
        if mechanism != PLAIN:
            return None
        problem = f'set it to {PLAIN_MODULE} required user_<name>="<password>"; or no user can log in'
        raise ConfigError(f"{name}: {problem}", name=name)
    module = parse_jaas(name, own.sasl_jaas_config)
    if mechanism == PLAIN and module.name != PLAIN_MODULE:
        raise ConfigError(f"{name}: the login module is {module.name}; {PLAIN_MODULE} is the only one", name=name)
    return module


def contradictions(config: SecuredAddresses) -> Iterator[str]:
    """Yields what does not fit."""
    bound = (*config.bound_listeners, *config.bound_controllers)
    names = {*protocol_map(config.listener_security_protocol_map), *map(str.upper, config.controller_listener_names)}
    for name in unknown_listeners(config.explicit, (*(listener.name for listener in bound), *names)):
        yield f"{name}: there is no such listener; there are {', '.join(listener.name for listener in bound)}"
    for listener in bound:
        try:
            yield from _listener_problems(listener, config)
        except ConfigError as error:
            yield error.message
    yield from _peer_problems(config)


def _listener_problems(listener: ListenerAddress, secured: SecuredConfig) -> Iterator[str]:
    builder = secured.options_of(listener.name).principal_builder_class
    if builder != DEFAULT_PRINCIPAL_BUILDER:
        yield f"principal.builder.class is {builder}; classes of Java are not loaded, but {DEFAULT_PRINCIPAL_BUILDER}"
    if is_sasl(listener):
        mechanisms_of(secured, listener.name)


class PeerListener(NamedTuple):
    """The listener at which this node reaches others."""

    name: str
    protocol: str
    mechanism: str
    """The SASL mechanism by which it authenticates there, where it has to."""
    option: str
    """The option that says so."""

    @property
    def is_sasl(self) -> bool:
        return self.protocol.startswith("SASL_")

    @property
    def is_tls(self) -> bool:
        return self.protocol.endswith("SSL")


def inter_broker_listener(config: SecuredAddresses) -> PeerListener:
    """Returns the listener at which this broker reaches others."""
    mechanism = config.options_of(config.inter_broker_listener).sasl_mechanism_inter_broker_protocol
    protocol = protocol_map(config.listener_security_protocol_map).get(config.inter_broker_listener, "PLAINTEXT")
    return PeerListener(
        config.inter_broker_listener, protocol, mechanism.upper(), "sasl.mechanism.inter.broker.protocol"
    )


def controller_listener(config: SecuredAddresses) -> PeerListener:
    """Returns the listener at which this broker reaches controllers: the first of controller.listener.names."""
    name = config.controller_listener_names[0].upper()
    protocol = protocol_map(config.listener_security_protocol_map).get(name, "PLAINTEXT")
    mechanism = config.options_of(name).sasl_mechanism_controller_protocol
    return PeerListener(name, protocol, mechanism.upper(), "sasl.mechanism.controller.protocol")


def login_of(config: SecuredConfig, listener: PeerListener) -> tuple[str, str]:
    """Returns the name and the password by which this node authenticates to others. Raises ConfigError."""
    name, mechanism, option = listener.name, listener.mechanism, listener.option
    if mechanism not in PEER_MECHANISMS:
        problem = f"{option}: it is {mechanism} at listener {name}; this node logs in to others by {BY_PEERS}"
        raise ConfigError(problem, name=option)
    module = login_module(config.options_of(name, mechanism), name, mechanism)
    login = None if module is None else module.login
    if login is None:
        jaas = jaas_option(name, mechanism)
        raise ConfigError(f"{jaas}: it needs username and password, by which this node logs in to others", name=jaas)
    return login


def _peer_problems(config: SecuredAddresses) -> Iterator[str]:
    """Yields what keeps this node from speaking to others."""
    listeners = [inter_broker_listener(config)] if config.has_peers and config.is_broker else []
    if config.has_remote_controllers and config.controller_listener_names:
        listeners.append(controller_listener(config))
    for listener in listeners:
        if listener.is_sasl:
            try:
                login_of(config, listener)
            except ConfigError as error:
                yield error.message
