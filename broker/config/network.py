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
        "listeners",
        LIST,
        ("PLAINTEXT://127.0.0.1:9092",),
        may_be_empty=False,
        importance="high",
        doc="Addresses to listen on, as NAME://host:port. An empty host binds every interface; port 0 picks a free "
        "port.",
    )
    advertised_listeners = option(
        "advertised.listeners",
        LIST,
        None,
        may_be_empty=False,
        importance="high",
        doc="Addresses that clients get to connect to, as NAME://host:port; listeners unless set.",
    )
    listener_security_protocol_map = option(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        importance="low",
        doc="Security protocol of each listener name, as NAME:PROTOCOL pairs.",
    )
    inter_broker_listener_name = option(
        "inter.broker.listener.name", STRING, None, doc="Listener through which brokers connect to each other."
    )
    security_inter_broker_protocol = option(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        one_of=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        doc="Security protocol between brokers, if inter.broker.listener.name is not set.",
    )
    socket_listen_backlog_size = option(
        "socket.listen.backlog.size",
        INT,
        50,
        at_least=1,
        doc="Length of the queue of connections that wait to be accepted; 1,024 unless this is set.",
    )
    socket_receive_buffer_bytes = option(
        "socket.receive.buffer.bytes",
        INT,
        102_400,
        importance="high",
        doc="SO_RCVBUF of client connections; -1 or unset leaves it to the operating system.",
    )
    socket_send_buffer_bytes = option(
        "socket.send.buffer.bytes",
        INT,
        102_400,
        importance="high",
        doc="SO_SNDBUF of client connections; -1 or unset leaves it to the operating system.",
    )
    socket_request_max_bytes = option(
        "socket.request.max.bytes",
        INT,
        104_857_600,
        at_least=1,
        importance="high",
        doc="Largest request. The broker closes the connection of a larger request.",
    )
    queued_max_request_bytes = option(
        "queued.max.request.bytes",
        LONG,
        536_870_912,
        doc="Limit on the memory of all requests that have been received completely or in part and are not answered "
        "yet. Above it, a request that has arrived in part waits for memory; a request that arrives complete does not "
        "wait. -1 is no limit, as is Kafka's default; then a few hundred connections can use up all memory of the "
        "machine. Must not be less than socket.request.max.bytes.",
    )
    odradek_queued_request_share_per_ip = option(
        "odradek.queued.request.share.per.ip",
        DOUBLE,
        0.5,
        at_least=0.01,
        at_most=1,
        doc="Share of queued.max.request.bytes that the connections of one address may use, so that a single client "
        "can't block all others.",
    )
    odradek_request_stall_timeout_ms = option(
        "odradek.request.stall.timeout.ms",
        LONG,
        30_000,
        at_least=100,
        update=CLUSTER_WIDE,
        doc="Time in which a connection must send the rest of a request that it has begun, or the next 64 KiB of it. "
        "The same time limits the wait for memory. Afterwards the connection is closed; otherwise a client that sends "
        "a byte now and then would hold memory for ever.",
    )
    odradek_unread_answers_max_bytes = option(
        "odradek.unread.answers.max.bytes",
        LONG,
        268_435_456,
        at_least=1,
        doc="Limit on the memory of all answers that clients have not read yet. Records don't count, because they are "
        "sent from files, and neither do the first 32 KiB of each connection. Above it, the broker closes a "
        "connection: from the address that holds most, the connection that has waited longest. A single larger answer "
        "is allowed.",
    )
    max_connections = option(
        "max.connections",
        INT,
        MAX_INT,
        at_least=0,
        update=CLUSTER_WIDE,
        doc="Maximum number of connections to the broker.",
    )
    max_connections_per_ip = option(
        "max.connections.per.ip",
        INT,
        MAX_INT,
        at_least=0,
        update=CLUSTER_WIDE,
        doc=("Maximum number of connections from one address."),
    )
    max_connections_per_ip_overrides = option(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        update=CLUSTER_WIDE,
        doc="Limits for single addresses that replace max.connections.per.ip, as host:count pairs.",
    )
    max_connection_creation_rate = option(
        "max.connection.creation.rate",
        INT,
        MAX_INT,
        at_least=0,
        update=CLUSTER_WIDE,
        doc="Connections accepted per second, measured over quota.window.num times quota.window.size.seconds; more "
        "connections wait to be accepted.",
    )
    odradek_connection_creation_rate_per_ip = option(
        "odradek.connection.creation.rate.per.ip",
        INT,
        MAX_INT,
        at_least=1,
        update=CLUSTER_WIDE,
        doc="Connections accepted per second from one address; more connections are closed after a delay. In Kafka "
        "this is a quota (connection_creation_rate of an ip).",
    )
    odradek_connection_surge_rate_per_ip = option(
        "odradek.connection.surge.rate.per.ip",
        INT,
        500,
        at_least=1,
        update=CLUSTER_WIDE,
        doc="Connections per second that one address may open; a burst may have the connections of four seconds. More "
        "are closed at once. On Linux, after a burst of one second's connections, the kernel drops the address's SYN "
        "packets for a moment, so that the client's kernel delays its connections.",
    )
    connections_max_idle_ms = option(
        "connections.max.idle.ms",
        LONG,
        600_000,
        doc="An idle connection is closed after this time; a negative value keeps idle connections.",
    )
    request_timeout_ms = option(
        "request.timeout.ms", INT, 30_000, importance="high", doc="Longest time that a client waits for an answer."
    )
    fetch_max_bytes = option(
        "fetch.max.bytes",
        INT,
        57_671_680,
        at_least=1_024,
        doc="Maximum bytes of records in a Fetch response; the first batch is returned whole even if it is larger.",
    )
    max_request_partition_size_limit = option(
        "max.request.partition.size.limit",
        INT,
        2_000,
        at_least=1,
        doc="Maximum number of partitions in a DescribeTopicPartitions response; its cursor leads to the next page.",
    )
    max_incremental_fetch_session_cache_slots = option(
        "max.incremental.fetch.session.cache.slots",
        INT,
        1_000,
        at_least=0,
        doc="Maximum number of incremental fetch sessions (KIP-227).",
    )
    telemetry_max_bytes = option(
        "telemetry.max.bytes",
        INT,
        1_048_576,
        at_least=1,
        importance="low",
        doc="Maximum size of a client's metrics push, uncompressed.",
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
