"""The quorum of controllers: this process alone, or others that it is a broker of.

Source: KRaftConfigs and QuorumConfig of Apache Kafka 4.3.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from protocol.config import INT, LIST, LONG, Config, ConfigError, option
from protocol.numbers import port_number, whole_number

UNKNOWN_ID: Final = -1
"""The id of a controller of which only the address is configured."""

VOTERS: Final = "controller.quorum.voters"
BOOTSTRAP_SERVERS: Final = "controller.quorum.bootstrap.servers"


class ControllerAddress(NamedTuple):
    """The id and address of a controller."""

    node_id: int
    host: str
    port: int


class QuorumOptions(Config):
    """The quorum of controllers, and this node's part in it."""

    process_roles = option(
        "process.roles",
        LIST,
        ("broker", "controller"),
        one_of=("broker", "controller"),
        may_be_empty=False,
        importance="high",
        doc="What this process does: broker,controller is a cluster of its own, which others join by its controller's "
        "listener; broker joins the controllers of others; controller decides for brokers in other processes.",
    )
    controller_listener_names = option(
        "controller.listener.names",
        LIST,
        (),
        may_be_empty=False,
        importance="high",
        doc="Names of the controllers' listeners. With process.roles=broker the first one says how they are spoken to; "
        "else those in listeners are opened, by which brokers join. Without any, a broker,controller is alone.",
    )
    controller_quorum_voters = option(
        VOTERS,
        LIST,
        (),
        importance="high",
        doc="Voters of the metadata quorum, as id@host:port. With process.roles=broker others, else this node or none.",
    )
    controller_quorum_bootstrap_servers = option(
        BOOTSTRAP_SERVERS,
        LIST,
        (),
        importance="high",
        doc="Addresses of the metadata quorum, as host:port, at which a broker begins to look for its leader. Not "
        "connected to where the controller is in the process.",
    )
    controller_quorum_fetch_timeout_ms = option(
        "controller.quorum.fetch.timeout.ms",
        INT,
        2_000,
        at_least=0,
        importance="high",
        doc="Time without an answer from the quorum's leader after which a broker asks the other controllers for it.",
    )
    controller_quorum_request_timeout_ms = option(
        "controller.quorum.request.timeout.ms",
        INT,
        2_000,
        at_least=0,
        doc="Time that a controller has to answer a request of the quorum's.",
    )
    controller_quorum_retry_backoff_ms = option(
        "controller.quorum.retry.backoff.ms",
        INT,
        20,
        at_least=0,
        importance="low",
        doc="Time after which a request of the quorum's that failed is made again.",
    )
    controller_quorum_fetch_max_bytes = option(
        "controller.quorum.fetch.max.bytes",
        INT,
        1_048_576,
        at_least=1,
        importance="low",
        doc="Most bytes of metadata records in one answer, or one batch if that is larger.",
    )
    controller_quorum_fetch_snapshot_max_bytes = option(
        "controller.quorum.fetch.snapshot.max.bytes",
        INT,
        1_048_576,
        at_least=1,
        importance="low",
        doc="Most bytes of a snapshot of the metadata in one answer.",
    )
    broker_heartbeat_interval_ms = option(
        "broker.heartbeat.interval.ms", INT, 2_000, doc="Time between two heartbeats of a broker to its controller."
    )
    broker_session_timeout_ms = option(
        "broker.session.timeout.ms",
        INT,
        9_000,
        doc="Time without heartbeats after which a controller fences a broker, and longest pause before a broker tries "
        "again to reach one.",
    )
    initial_broker_registration_timeout_ms = option(
        "initial.broker.registration.timeout.ms",
        INT,
        60_000,
        doc="Time that a broker tries to register with its controllers when it starts, before it gives up.",
    )
    log_dir_failure_timeout_ms = option(
        "log.dir.failure.timeout.ms",
        LONG,
        30_000,
        at_least=1,
        importance="low",
        doc="Time within which a controller elsewhere must have been told of a log directory that failed; else the "
        "broker stops.",
    )


def controllers(voters: tuple[str, ...], bootstrap_servers: tuple[str, ...]) -> tuple[ControllerAddress, ...]:
    """Returns the addresses of the quorum: of the voters, else the bootstrap servers. Raises ConfigError."""
    if voters:
        return tuple(_voter(text) for text in voters)
    return tuple(_address(BOOTSTRAP_SERVERS, text, UNKNOWN_ID, text) for text in bootstrap_servers)


def _voter(text: str) -> ControllerAddress:
    node_id, at, address = text.partition("@")
    number = whole_number(node_id)
    if not at or number is None or number < 0:
        raise ConfigError(f"{VOTERS}: {text!r} is not id@host:port, such as 1@127.0.0.1:9093", name=VOTERS)
    return _address(VOTERS, address, number, text)


def _address(name: str, address: str, node_id: int, text: str) -> ControllerAddress:
    host, _, port = address.rpartition(":")
    number = port_number(port)
    if not host or not number:
        raise ConfigError(f"{name}: {text!r} has no host:port, such as 127.0.0.1:9093", name=name)
    return ControllerAddress(node_id, host.removeprefix("[").removesuffix("]"), number)
