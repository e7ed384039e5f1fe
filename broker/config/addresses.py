"""The addresses at which a node listens, and those that it advertises to clients, brokers and controllers.

Source: KafkaConfig.validateValues, SocketServerConfigs.
"""

from __future__ import annotations

from typing import Final

from broker.config.listeners import ListenerAddress, parse_listeners, protocol_map
from broker.config.network import NetworkOptions
from broker.config.node import NodeOptions
from broker.config.quorum import ControllerAddress, QuorumOptions, controllers


class AddressOptions(NetworkOptions, NodeOptions, QuorumOptions):
    """The listeners, and the addresses that follow from them and from the node's roles."""

    bound_listeners: tuple[ListenerAddress, ...]
    """Listeners to open for clients: `listeners` without the controller's."""
    advertised: tuple[ListenerAddress, ...]
    """Addresses that clients connect to: advertised.listeners without the controller's, or bound_listeners if it isn't
    set.
    """
    inter_broker_listener: str
    """Name of the listener that brokers use among themselves."""
    bound_controllers: tuple[ListenerAddress, ...]
    """Listeners to open for the controller in this process; empty without a controller, or if the cluster has one node.
    """
    advertised_controllers: tuple[ListenerAddress, ...]
    """Addresses of the controller's listeners that brokers connect to."""
    has_remote_controllers: bool
    """True if the controllers are other processes: process.roles is broker only."""
    is_broker: bool
    """True if this process is a broker, whether or not it is a controller too."""
    has_peers: bool
    """True if the cluster may have other nodes."""
    controllers: tuple[ControllerAddress, ...]
    """Addresses of the controllers: controller.quorum.voters, or else controller.quorum.bootstrap.servers."""


def addresses(config: AddressOptions) -> dict[str, object]:
    """Returns the derived attributes. Raises ConfigError."""
    protocols = protocol_map(config.listener_security_protocol_map)
    of_controllers = {name.upper() for name in config.controller_listener_names}
    protocols = dict.fromkeys(of_controllers, "PLAINTEXT") | protocols
    bound = parse_listeners("listeners", config.listeners, protocols)
    advertised = parse_listeners("advertised.listeners", config.advertised_listeners or (), protocols)
    clients = tuple(listener for listener in bound if listener.name not in of_controllers)
    own_controllers = tuple(listener for listener in bound if listener.name in of_controllers)
    has_controller = "controller" in config.process_roles
    return {
        "has_remote_controllers": set(config.process_roles) == {"broker"},
        "is_broker": "broker" in config.process_roles,
        "controllers": controllers(config.controller_quorum_voters, config.controller_quorum_bootstrap_servers),
        "bound_controllers": own_controllers if has_controller else (),
        "advertised_controllers": tuple(
            next((address for address in advertised if address.name == listener.name), _unadvertised(listener))
            for listener in own_controllers
        ),
        "has_peers": bool(own_controllers) or not has_controller,
        "bound_listeners": clients,
        "advertised": tuple(listener for listener in advertised if listener.name not in of_controllers) or clients,
        "inter_broker_listener": (config.inter_broker_listener_name or config.security_inter_broker_protocol).upper(),
    }


def _unadvertised(controller: ListenerAddress) -> ListenerAddress:
    """Returns the address of a controller's listener that advertised.listeners doesn't name: 0.0.0.0 becomes this
    machine's name, and is no error (KafkaConfig.effectiveAdvertisedControllerListeners)."""
    return controller._replace(host="") if controller.host == "0.0.0.0" else controller


def _client_listener(config: AddressOptions) -> str | None:
    if config.bound_listeners or not config.is_broker:
        return None
    return "listeners has no listener for clients: controller.listener.names lists all of them"


def _advertised_names(config: AddressOptions) -> str | None:
    if not config.is_broker:
        return None
    bound = [listener.name for listener in config.bound_listeners]
    unknown = [listener.name for listener in config.advertised if listener.name not in bound]
    if not unknown:
        return None
    return f"advertised.listeners: listeners doesn't contain {', '.join(unknown)}, only {', '.join(bound)}"


def _inter_broker_name(config: AddressOptions) -> str | None:
    names = [listener.name for listener in config.advertised]
    if config.inter_broker_listener_name is None or config.inter_broker_listener in names or not config.is_broker:
        return None
    return (
        f"inter.broker.listener.name is {config.inter_broker_listener}, which is not an advertised listener "
        f"({', '.join(names)})"
    )


def _routable(config: AddressOptions) -> str | None:
    advertised = (*config.advertised, *config.advertised_controllers)
    if config.advertised_listeners is None or all(listener.host != "0.0.0.0" for listener in advertised):
        return None
    return "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address."


def _only_controllers(config: AddressOptions) -> str | None:
    if config.is_broker or not config.bound_listeners:
        return None
    return (
        "The listeners config must only contain KRaft controller listeners from controller.listener.names when "
        f"process.roles=controller: {config.bound_listeners[0].name} is none of them"
    )


def _opens_own_controller(config: AddressOptions) -> str | None:
    """Returns an error if a controller that has listener names, or other voters, has no listener."""
    is_alone = config.is_broker and not config.controller_listener_names and len(config.controller_quorum_voters) < 2
    if config.has_remote_controllers or config.bound_controllers or is_alone:
        return None
    return (
        "controller.listener.names must contain at least one value appearing in the 'listeners' configuration when "
        "running the KRaft controller role"
    )


def _is_voter(config: AddressOptions) -> str | None:
    voters = sorted(voter.node_id for voter in config.controllers if config.controller_quorum_voters)
    if config.has_remote_controllers or not voters or config.node_id in voters:
        return None
    return (
        f"If process.roles contains the 'controller' role, the node id {config.node_id} must be included in the set of "
        f"voters controller.quorum.voters={voters}"
    )


def _no_voter(config: AddressOptions) -> str | None:
    voters = sorted(voter.node_id for voter in config.controllers if config.controller_quorum_voters)
    if not config.has_remote_controllers or config.node_id not in voters:
        return None
    return (
        f"If process.roles contains just the 'broker' role, the node id {config.node_id} must not be included in the "
        f"set of voters controller.quorum.voters={voters}"
    )


def _has_quorum(config: AddressOptions) -> str | None:
    if not config.has_remote_controllers or config.controllers:
        return None
    return (
        "If using process.roles, either controller.quorum.bootstrap.servers must contain the set of bootstrap "
        "controllers or controller.quorum.voters must contain a parseable set of controllers."
    )


def _names_controllers(config: AddressOptions) -> str | None:
    if not config.has_remote_controllers or config.controller_listener_names:
        return None
    return "controller.listener.names must contain at least one value when running KRaft with just the broker role"


def _opens_no_controller(config: AddressOptions) -> str | None:
    if not config.has_remote_controllers or len(config.bound_listeners) == len(config.listeners):
        return None
    return (
        "controller.listener.names must not contain a value appearing in the 'listeners' configuration when running "
        "KRaft with just the broker role"
    )


ADDRESSES: Final = (_client_listener, _advertised_names, _inter_broker_name, _routable)
QUORUM: Final = (
    _no_voter,
    _is_voter,
    _has_quorum,
    _names_controllers,
    _opens_no_controller,
    _only_controllers,
    _opens_own_controller,
)
