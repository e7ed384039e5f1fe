"""Sockets and connections: listeners, limits of connections, limits of memory for requests and answers."""

from __future__ import annotations

from typing import Final

from protocol.addresses import canonical
from protocol.config import CLUSTER_WIDE, DOUBLE, INT, LIST, LONG, STRING, Config, ConfigError, option
from protocol.numbers import whole_number

MAX_INT: Final = (1 << 31) - 1


class NetworkOptions(Config):
    """Sockets and connections: listeners, limits of connections, limits of memory for requests and answers."""

    listeners = option(
        "listeners",
        LIST,
        ("PLAINTEXT://127.0.0.1:9092",),
        may_be_empty=False,
        importance="high",
        doc="Addresses to listen on, as NAME://host:port. An empty host is every interface, port 0 any free port.",
    )
    advertised_listeners = option(
        "advertised.listeners",
        LIST,
        None,
        may_be_empty=False,
        importance="high",
        doc="Addresses that clients are told, as NAME://host:port; those of listeners unless set.",
    )
    listener_security_protocol_map = option(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        importance="low",
        doc="Security protocol of each listener name, as NAME:PROTOCOL pairs.",
    )
    inter_broker_listener_name = option(
        "inter.broker.listener.name", STRING, None, doc="Listener that brokers use among themselves."
    )
    security_inter_broker_protocol = option(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        one_of=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        doc="Security protocol among brokers, where inter.broker.listener.name is not set.",
    )
    socket_listen_backlog_size = option(
        "socket.listen.backlog.size",
        INT,
        50,
        at_least=1,
        doc="Connections that may wait to be accepted; 1,024 unless this is set.",
    )
    socket_receive_buffer_bytes = option(
        "socket.receive.buffer.bytes",
        INT,
        102_400,
        importance="high",
        doc="SO_RCVBUF of client connections, where it is set; -1 or unset leaves it to the operating system.",
    )
    socket_send_buffer_bytes = option(
        "socket.send.buffer.bytes",
        INT,
        102_400,
        importance="high",
        doc="SO_SNDBUF of client connections, where it is set; -1 or unset leaves it to the operating system.",
    )
    socket_request_max_bytes = option(
        "socket.request.max.bytes",
        INT,
        104_857_600,
        at_least=1,
        importance="high",
        doc="Largest request; a longer one closes its connection.",
    )
    queued_max_request_bytes = option(
        "queued.max.request.bytes",
        LONG,
        536_870_912,
        doc="Most memory that all connections together hold of requests that are not answered yet: in part, or behind "
        "others. Beyond it a request that has come in part waits for room; one that comes whole does not. -1 is no "
        "limit, which is Kafka's default: then a few hundred connections can take all memory of the machine. No less "
        "than socket.request.max.bytes in force.",
    )
    odradek_queued_request_share_per_ip = option(
        "odradek.queued.request.share.per.ip",
        DOUBLE,
        0.5,
        at_least=0.01,
        at_most=1,
        doc="How much of queued.max.request.bytes the connections of one address may hold, so that one cannot keep all "
        "others waiting.",
    )
    odradek_request_stall_timeout_ms = option(
        "odradek.request.stall.timeout.ms",
        LONG,
        30_000,
        at_least=100,
        update=CLUSTER_WIDE,
        doc="A connection whose request has begun to come must bring the rest of it, or 64 KiB, within this time; so "
        "must one that waits for room get it. Else it is closed. Without it a byte now and then would hold memory "
        "for ever.",
    )
    odradek_unread_answers_max_bytes = option(
        "odradek.unread.answers.max.bytes",
        LONG,
        268_435_456,
        at_least=1,
        doc="Most memory that all connections together hold of answers that their peers have not taken, but for "
        "records, which lie in files, and 32 KiB of each. Beyond it one is cut off: of the address that holds most the "
        "one that has waited longest. One answer may be larger, alone.",
    )
    max_connections = option(
        "max.connections",
        INT,
        MAX_INT,
        at_least=0,
        update=CLUSTER_WIDE,
        doc="Connections that the broker holds at once.",
    )
    max_connections_per_ip = option(
        "max.connections.per.ip", INT, MAX_INT, at_least=0, update=CLUSTER_WIDE, doc="Connections from one address."
    )
    max_connections_per_ip_overrides = option(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        update=CLUSTER_WIDE,
        doc="Other limits for some addresses, as host:count pairs.",
    )
    max_connection_creation_rate = option(
        "max.connection.creation.rate",
        INT,
        MAX_INT,
        at_least=0,
        update=CLUSTER_WIDE,
        doc="Connections accepted in a second, measured over quota.window.num times quota.window.size.seconds; others "
        "wait for their turn.",
    )
    odradek_connection_creation_rate_per_ip = option(
        "odradek.connection.creation.rate.per.ip",
        INT,
        MAX_INT,
        at_least=1,
        update=CLUSTER_WIDE,
        doc="Connections accepted in a second from one address; others are closed, a little later. Kafka has it as a "
        "quota (connection_creation_rate of an ip).",
    )
    odradek_connection_surge_rate_per_ip = option(
        "odradek.connection.surge.rate.per.ip",
        INT,
        500,
        at_least=1,
        update=CLUSTER_WIDE,
        doc="Connections that one address may make in a second; it may make four seconds' worth at once. "
        "Others are closed as they come. On Linux it is not heard for a moment already after a second's worth, so that "
        "its own kernel has them wait.",
    )
    connections_max_idle_ms = option(
        "connections.max.idle.ms", LONG, 600_000, doc="A connection that was silent this long is closed."
    )
    request_timeout_ms = option(
        "request.timeout.ms", INT, 30_000, importance="high", doc="Longest time that a client waits for an answer."
    )
    fetch_max_bytes = option(
        "fetch.max.bytes",
        INT,
        57_671_680,
        at_least=1_024,
        doc="Most bytes of records in the answer to a Fetch; the first batch is returned whole even if it is larger.",
    )
    max_request_partition_size_limit = option(
        "max.request.partition.size.limit",
        INT,
        2_000,
        at_least=1,
        doc="Most partitions in the answer to a DescribeTopicPartitions; a cursor leads to the rest.",
    )
    max_incremental_fetch_session_cache_slots = option(
        "max.incremental.fetch.session.cache.slots",
        INT,
        1_000,
        at_least=0,
        doc="Incremental fetch sessions kept (KIP-227).",
    )
    telemetry_max_bytes = option(
        "telemetry.max.bytes",
        INT,
        1_048_576,
        at_least=1,
        importance="low",
        doc="Largest metrics push of a client, uncompressed.",
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
