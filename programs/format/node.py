"""The node whose directories are formatted: its options, and the voters of its quorum.

Source: Kafka's StorageTool.runFormatCommand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from broker.config import BrokerConfig
from broker.config.listeners import ListenerAddress, parse_listeners, protocol_map
from broker.network.endpoints import advertised
from coordinator.cluster.voters import InitialVoter, initial_voters
from protocol.config import ConfigError
from protocol.types import Uuid

OPTIONS: Final = frozenset({
    "advertised.listeners",
    "broker.id",
    "broker.id.generation.enable",
    "controller.listener.names",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.voters",
    "listener.security.protocol.map",
    "listeners",
    "log.dir",
    "log.dirs",
    "metadata.log.dir",
    "node.id",
    "odradek.zookeeper.digest",
    "process.roles",
    "reserved.broker.max.id",
    "zookeeper.connect",
    "zookeeper.connection.timeout.ms",
    "zookeeper.session.timeout.ms",
    "zookeeper.set.acl",
})  # fmt: skip
"""The options that formatting uses."""

CONTROLLER: Final = ListenerAddress("CONTROLLER", "127.0.0.1", 9093, "PLAINTEXT")
"""The controller's listener in a combined node whose configuration has none."""


class QuorumChoice(NamedTuple):
    """The choice of the first voters: the command's three options, which exclude each other."""

    standalone: bool = False
    no_initial_controllers: bool = False
    initial_controllers: str | None = None

    @property
    def is_dynamic(self) -> bool:
        return self.standalone or self.initial_controllers is not None


def choose_voters(
    config: BrokerConfig, choice: QuorumChoice, new_uuid: Callable[[], Uuid]
) -> tuple[InitialVoter, ...] | None:
    """Returns the first voters in the metadata; None if they are configured, or join later. Raises ConfigError for an
    invalid combination of options."""
    is_controller = "controller" in config.process_roles
    if choice.is_dynamic and config.controller_quorum_voters:
        raise ConfigError(
            "You cannot specify controller.quorum.voters and format the node with --initial-controllers or "
            "--standalone. If you want to use dynamic quorum, please remove controller.quorum.voters and specify "
            "controller.quorum.bootstrap.servers instead."
        )
    if choice.standalone and not is_controller:
        raise ConfigError("You can only use --standalone on a controller.")
    if choice.standalone:
        return (_standalone_voter(config, new_uuid()),)
    if choice.initial_controllers is not None:
        return initial_voters(choice.initial_controllers)
    if is_controller and not config.controller_quorum_voters and not choice.no_initial_controllers:
        raise ConfigError(
            "Because controller.quorum.voters is not set on this controller, you must specify one of the following: "
            "--standalone, --initial-controllers, or --no-initial-controllers."
        )
    return None


def controller_listener_name(config: BrokerConfig) -> str:
    """Returns the name of the controllers' listener."""
    return config.controller_listener_names[0].upper() if config.controller_listener_names else CONTROLLER.name


def _standalone_voter(config: BrokerConfig, directory_id: Uuid) -> InitialVoter:
    listener = _controller_listener(config)
    if not listener.port:
        raise ConfigError(f"listeners: {listener.name} has port 0; a controller needs a fixed port")
    return InitialVoter(config.node_id, listener.host, listener.port, directory_id)


def _controller_listener(config: BrokerConfig) -> ListenerAddress:
    """Returns the advertised listener of the controller: the first of controller.listener.names."""
    if not config.controller_listener_names:
        return CONTROLLER
    name = controller_listener_name(config)
    protocols = {name: "PLAINTEXT"} | protocol_map(config.listener_security_protocol_map)
    protocols |= {other.upper(): "PLAINTEXT" for other in config.controller_listener_names if other not in protocols}
    for listener in parse_listeners("listeners", config.listeners, protocols):
        if listener.name == name:
            return advertised(
                listener, parse_listeners("advertised.listeners", config.advertised_listeners or (), protocols)
            )
    raise ConfigError(
        f"No controller listeners found: listeners has no {name}, which controller.listener.names begins with"
    )
