"""The context of a request besides its body: its client, its listener, and its start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from coordinator.cluster.requester import Requester
from protocol.primitives import AS_JAVA
from protocol.types import Buffer

AnswerBuffers: TypeAlias = "list[Buffer] | None"
"""The buffers of an answer's frame; None if the client expects no answer (acks=0)."""


class Principal(NamedTuple):
    """A client's identity, as authorizers and quotas see it (org.apache.kafka.common.security.auth.KafkaPrincipal)."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
"""The principal of every client on a listener that does not authenticate."""


class ClientConnection:
    """A client's connection, as its requests see it."""

    __slots__ = (
        "_client_id",
        "_raw_client_id",
        "authentication",
        "begun_ns",
        "by_token",
        "client_software",
        "closed",
        "decided_by",
        "decided_for",
        "decisions",
        "finish",
        "ip",
        "listener_name",
        "on_close",
        "peer",
        "principal",
        "received_ns",
        "refused_because",
    )

    def __init__(self, listener_name: str, finish: Callable[[Context, AnswerBuffers], AnswerBuffers]) -> None:
        """`finish` passes each answer through the interceptors of answers."""
        self.listener_name = listener_name
        self.finish = finish
        self.principal = ANONYMOUS
        self.by_token = False
        """True if the client authenticated with a delegation token."""
        self.authentication: object | None = None
        """The state of the SASL authentication, on a listener that requires it (broker/security/)."""
        self.refused_because = ""
        """The reason for closing the connection after the pending answer is written; empty if it stays open."""
        self.peer = ""
        """The client's address and port, for the log."""
        self.ip = ""
        self.client_software = ("unknown", "unknown")
        """Name and version of the client software, from ApiVersions."""
        self.received_ns = 0
        """The time of the last received bytes, by the monotonic clock."""
        self.begun_ns = 0
        """The start of the last request that had waited behind other requests."""
        self.closed = False
        self.on_close: list[Callable[[ClientConnection], None]] = []
        """Called when the connection is closed."""
        self.decisions: dict[tuple[int, int, str], bool] = {}
        """The authorizer's decisions, by operation, resource type and name."""
        self.decided_by = 0
        """The version of the ACLs that `decisions` are based on."""
        self.decided_for = ANONYMOUS
        """The principal of `decisions`."""
        self._raw_client_id = b""
        self._client_id = ""

    def authenticated(self, principal: Principal) -> None:
        """Sets the principal of a client that has authenticated or reauthenticated."""
        self.principal = principal

    def client_id(self, raw: bytes) -> str:
        """Returns the client id of a request's header, decoded again only if it differs from the last request's."""
        if raw != self._raw_client_id:
            self._client_id, self._raw_client_id = str(raw, "utf-8", AS_JAVA), raw
        return self._client_id

    def throttle(self, delay_ms: int) -> None:
        """Sends no answers for `delay_ms`. For a forwarded request, the broker that forwarded it does so instead."""


class Context:
    """The context of one request, created before its body is parsed. `Call` and every fast path use it."""

    __slots__ = (
        "answer_items", "audit_lines", "client_id", "connection", "correlation_id", "counted_as", "is_large", "key",
        "parked_ns", "size_bytes", "started_ns", "throttle_ms", "version",
    )  # fmt: skip

    def __init__(
        self, connection: ClientConnection, key: int, version: int, correlation_id: int, client_id: str | None,
        size_bytes: int,
    ) -> None:  # fmt: skip
        self.connection = connection
        self.key = key
        """The API key."""
        self.counted_as = key
        """The API key under which the request is counted; it differs for a follower's Fetch."""
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.size_bytes = size_bytes
        """The size of the request's frame."""
        self.is_large = False
        """True if the answer may have many entries; then a thread encodes it."""
        self.answer_items = 0
        """The items of the answer that the handler has counted: members, offsets, configs."""
        self.started_ns = connection.received_ns
        """The time of receipt, by the monotonic clock; requests in one read share it."""
        self.parked_ns = 0
        """The time at which its handler began to wait; 0 if it hasn't waited."""
        self.throttle_ms = 0
        """The throttle time of a client that is beyond a quota."""
        self.audit_lines = 0
        """Lines of the audit log that the request has caused."""

    @property
    def principal(self) -> Principal:
        return self.connection.principal

    @property
    def listener(self) -> str:
        """The name of the listener that received the request."""
        return self.connection.listener_name

    @property
    def peer(self) -> str:
        """The client's address and port, for the log."""
        return self.connection.peer

    @property
    def requester(self) -> Requester:
        """The client, as a broker passes it to the controller."""
        connection = self.connection
        kind, name = connection.principal
        return Requester(kind, name, self.client_id, connection.ip, connection.by_token)

    def finish(self, answer: AnswerBuffers) -> AnswerBuffers:
        """Returns the answer to send, after the interceptors. Each answer passes them once, after its handler and
        before its socket.
        """
        return self.connection.finish(self, answer)
