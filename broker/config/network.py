"""Options of sockets and connections: listeners, limits on connections, and on memory for requests and answers."""

from __future__ import annotations

from typing import Final

from protocol.addresses import canonical
from protocol.config import CLUSTER_WIDE, DOUBLE, INT, LIST, LONG, STRING, Config, ConfigError, option
from protocol.numbers import whole_number

MAX_INT: Final = (1 << 31) - 1


class NetworkOptions(Config):
    """Options of sockets and connections: listeners, limits on connections, and on memory for requests and answers."""

    listeners = option(
        LIST,
        ("PLAINTEXT://127.0.0.1:9092",),
        "Addresses to listen on, as NAME://host:port. An empty host binds every interface; port 0 picks a free port.",
        may_be_empty=False,
        importance="high",
    )
    advertised_listeners = option(
        LIST,
        None,
        "Addresses that clients get to connect to, as NAME://host:port; listeners unless set.",
        may_be_empty=False,
        importance="high",
    )
    listener_security_protocol_map = option(
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "Security protocol of each listener name, as NAME:PROTOCOL pairs.",
        importance="low",
    )
    inter_broker_listener_name = option(STRING, None, "Listener through which brokers connect to each other.")
    security_inter_broker_protocol = option(
        STRING,
        "PLAINTEXT",
        "Security protocol between brokers, if inter.broker.listener.name is not set.",
        one_of=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    )
    socket_listen_backlog_size = option(
        INT, 50, "Length of the queue of connections that wait to be accepted; 1,024 unless this is set.", at_least=1
    )
    socket_receive_buffer_bytes = option(
        INT,
        102_400,
        "SO_RCVBUF of client connections; -1 or unset leaves it to the operating system.",
        importance="high",
    )
    socket_send_buffer_bytes = option(
        INT,
        102_400,
        "SO_SNDBUF of client connections; -1 or unset leaves it to the operating system.",
        importance="high",
    )
    socket_request_max_bytes = option(
        INT,
        104_857_600,
        "Largest request. The broker closes the connection of a larger request.",
        at_least=1,
        importance="high",
    )
    queued_max_request_bytes = option(
        LONG,
        536_870_912,
        "Limit on the memory of all requests that have been received completely or in part and are not answered "
        "yet. Above it, a request that has arrived in part waits for memory; a request that arrives complete does not "
        "wait. -1 is no limit, as is Kafka's default; then a few hundred connections can use up all memory of the "
        "machine. Must not be less than socket.request.max.bytes.",
    )
    odradek_queued_request_share_per_ip = option(
        DOUBLE,
        0.5,
        "Share of queued.max.request.bytes that the connections of one address may use, so that a single client "
        "can't block all others.",
        at_least=0.01,
        at_most=1,
    )
    odradek_request_stall_timeout_ms = option(
        LONG,
        30_000,
        "Time in which a connection must send the rest of a request that it has begun, or the next 64 KiB of it. "
        "The same time limits the wait for memory. Afterwards the connection is closed; otherwise a client that sends "
        "a byte now and then would hold memory forever.",
        at_least=100,
        update=CLUSTER_WIDE,
    )
    odradek_unread_answers_max_bytes = option(
        LONG,
        268_435_456,
        "Limit on the memory of all answers that clients have not read yet. Records don't count, because they are "
        "sent from files, and neither do the first 32 KiB of each connection. Above it, the broker closes a "
        "connection: from the address that holds most, the connection that has waited longest. A single larger answer "
        "is allowed.",
        at_least=1,
    )
    max_connections = option(
        INT, MAX_INT, "Maximum number of connections to the broker.", at_least=0, update=CLUSTER_WIDE
    )
    max_connections_per_ip = option(
        INT, MAX_INT, "Maximum number of connections from one address.", at_least=0, update=CLUSTER_WIDE
    )
    max_connections_per_ip_overrides = option(
        STRING,
        "",
        "Limits for single addresses that replace max.connections.per.ip, as host:count pairs.",
        update=CLUSTER_WIDE,
    )
    max_connection_creation_rate = option(
        INT,
        MAX_INT,
        "Connections accepted per second, measured over quota.window.num times quota.window.size.seconds; more "
        "connections wait to be accepted.",
        at_least=0,
        update=CLUSTER_WIDE,
    )
    odradek_connection_creation_rate_per_ip = option(
        INT,
        MAX_INT,
        "Connections accepted per second from one address; more connections are closed after a delay. In Kafka "
        "this is a quota (connection_creation_rate of an ip).",
        at_least=1,
        update=CLUSTER_WIDE,
    )
    odradek_connection_surge_rate_per_ip = option(
        INT,
        500,
        "Connections per second that one address may open; a burst may have the connections of four seconds. More "
        "are closed at once. On Linux, after a burst of one second's connections, the kernel drops the address's SYN "
        "packets for a moment, so that the client's kernel delays its connections.",
        at_least=1,
        update=CLUSTER_WIDE,
    )
    connections_max_idle_ms = option(
        LONG, 600_000, "An idle connection is closed after this time; a negative value keeps idle connections."
    )
    request_timeout_ms = option(INT, 30_000, "Longest time that a client waits for an answer.", importance="high")
    fetch_max_bytes = option(
        INT,
        57_671_680,
        "Maximum bytes of records in a Fetch response; the first batch is returned whole even if it is larger.",
        at_least=1_024,
    )
    max_request_partition_size_limit = option(
        INT,
        2_000,
        "Maximum number of partitions in a DescribeTopicPartitions response; its cursor leads to the next page.",
        at_least=1,
    )
    max_incremental_fetch_session_cache_slots = option(
        INT, 1_000, "Maximum number of incremental fetch sessions (KIP-227).", at_least=0
    )
    telemetry_max_bytes = option(
        INT, 1_048_576, "Maximum size of a client's metrics push, uncompressed.", at_least=1, importance="low"
    )


def limits_by_host(text: str) -> dict[str, int]:
    """Returns max.connections.per.ip.overrides as numbers by host. Raises ConfigError."""
    limits = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        host, _, count = pair.rpartition(":")
        limit = whole_number(count.strip())
        if not host or limit is None or not 0 <= limit <= MAX_INT:
            name = "max.connections.per.ip.overrides"
            raise ConfigError(f"{name}: {pair!r} is not host:count, such as 127.0.0.1:200", name=name)
        limits[canonical(host.strip().strip("[]"))] = limit
    return limits
