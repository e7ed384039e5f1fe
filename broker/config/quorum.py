"""Options of the controller quorum: this process alone, or controllers in other processes.

Source: KRaftConfigs and QuorumConfig of Apache Kafka 4.3.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from protocol.config import BOOLEAN, INT, LIST, LONG, Config, ConfigError, option
from protocol.numbers import port_number, whole_number

UNKNOWN_ID: Final = -1
"""The id of a controller if only its address is configured."""

VOTERS: Final = "controller.quorum.voters"
BOOTSTRAP_SERVERS: Final = "controller.quorum.bootstrap.servers"


class ControllerAddress(NamedTuple):
    """The id and address of a controller."""

    node_id: int
    host: str
    port: int


class QuorumOptions(Config):
    """Options of the controller quorum, and of this node's part in it."""

    process_roles = option(
        LIST,
        ("broker", "controller"),
        "Roles of this process. broker,controller is a broker and a voter of the quorum, alone or with others that "
        "reach its controller listener; broker joins a cluster whose controllers are other processes; controller is a "
        "voter that serves brokers in other processes.",
        one_of=("broker", "controller"),
        may_be_empty=False,
        importance="high",
    )
    controller_listener_names = option(
        LIST,
        (),
        "Names of the controllers' listeners. With process.roles=broker, the first name selects the security "
        "protocol of connections to controllers. With other roles, the names select the entries of listeners through "
        "which brokers join; without names, a broker,controller process is a single-node cluster.",
        may_be_empty=False,
        importance="high",
    )
    controller_quorum_voters = option(
        LIST,
        (),
        "Voters of the metadata quorum, as id@host:port. With process.roles=broker they are other nodes; else this "
        "node is one of them. Empty if the voters are in the metadata log.",
        importance="high",
    )
    controller_quorum_bootstrap_servers = option(
        LIST,
        (),
        "Addresses of the metadata quorum, as host:port, through which a node finds the quorum's leader. Not used by "
        "the only voter.",
        importance="high",
    )
    controller_quorum_election_timeout_ms = option(
        INT,
        1_000,
        "Time without a leader after which a controller tries to be elected; each waits a random time of up to twice "
        "as long.",
        at_least=0,
        importance="high",
    )
    controller_quorum_election_backoff_max_ms = option(
        INT,
        1_000,
        "Longest pause before a controller tries again after an election without a winner.",
        at_least=0,
        importance="high",
    )
    controller_quorum_auto_join_enable = option(
        BOOLEAN,
        False,
        "Let a controller that is no voter add itself to the voters of the quorum.",
        importance="low",
    )
    controller_quorum_fetch_timeout_ms = option(
        INT,
        2_000,
        "Time without an answer from the quorum's leader after which a broker asks the other controllers for the "
        "leader.",
        at_least=0,
        importance="high",
    )
    controller_quorum_request_timeout_ms = option(
        INT, 2_000, "Time after which a request to the quorum fails without an answer.", at_least=0
    )
    controller_quorum_retry_backoff_ms = option(
        INT, 20, "Pause before a failed request to the quorum is retried.", at_least=0, importance="low"
    )
    controller_quorum_fetch_max_bytes = option(
        INT,
        1_048_576,
        "Maximum bytes of metadata records in one response; a single batch may be larger.",
        at_least=1,
        importance="low",
    )
    controller_quorum_fetch_snapshot_max_bytes = option(
        INT, 1_048_576, "Maximum bytes of a metadata snapshot in one response.", at_least=1, importance="low"
    )
    broker_heartbeat_interval_ms = option(INT, 2_000, "Interval between two heartbeats of a broker to its controller.")
    broker_session_timeout_ms = option(
        INT,
        9_000,
        "Time without heartbeats after which a controller fences a broker; also the longest pause before a broker "
        "retries a connection to the controller.",
    )
    controlled_shutdown_enable = option(
        BOOLEAN,
        True,
        "Hand over the partitions that a stopping broker leads before it stops serving clients. Without it, their "
        "leaders change only when the controller fences the broker.",
    )
    initial_broker_registration_timeout_ms = option(
        INT, 60_000, "Time that a starting broker tries to register with the controller before it gives up."
    )
    log_dir_failure_timeout_ms = option(
        LONG,
        30_000,
        "Time in which a controller in another process must accept the report of a failed log directory; "
        "otherwise the broker stops.",
        at_least=1,
        importance="low",
    )


def controllers(voters: tuple[str, ...], bootstrap_servers: tuple[str, ...]) -> tuple[ControllerAddress, ...]:
    """Returns the controllers in the voters option, or in the bootstrap servers if there are no voters. Raises
    ConfigError.
    """
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
        raise ConfigError(f"{name}: {text!r} is not host:port, such as 127.0.0.1:9093", name=name)
    return ControllerAddress(node_id, host.removeprefix("[").removesuffix("]"), number)
