"""The context of a request beside its body: its client, its listener, and its start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from protocol.primitives import AS_JAVA
from protocol.types import Buffer

AnswerBuffers: TypeAlias = "list[Buffer] | None"
"""The buffers of an answer's frame; None where the client expects no answer (acks=0)."""


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
        """The reason for closing the connection once its awaited answer is written; empty if it stays open."""
        self.peer = ""
        """The client's address and port, for the log."""
        self.ip = ""
        self.client_software = ("unknown", "unknown")
        """Name and version of the client software, from ApiVersions."""
        self.received_ns = 0
        """The time at which the last bytes were received, by the monotonic clock."""
        self.begun_ns = 0
        """The time at which the last request that waited behind others was begun."""
        self.closed = False
        self.on_close: list[Callable[[ClientConnection], None]] = []
        """Called when the connection is closed."""
        self.decisions: dict[tuple[int, int, str], bool] = {}
        """The authorizer's decisions, by operation, resource type and name."""
        self.decided_by = 0
        """The version of the access control entries behind `decisions`."""
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
        """Answers nothing for `delay_ms`. A connection that stands for another broker's client leaves that to the other
        broker."""


class Context:
    """The context of one request, made before its body is parsed; part of `Call`, and of every fast path."""

    __slots__ = (
        "audit_lines", "client_id", "connection", "correlation_id", "counted_as", "is_large", "key", "parked_ns",
        "size_bytes", "started_ns", "throttle_ms", "version",
    )  # fmt: skip

    def __init__(
        self, connection: ClientConnection, key: int, version: int, correlation_id: int, client_id: str | None,
        size_bytes: int,
    ) -> None:  # fmt: skip
        self.connection = connection
        self.key = key
        """The API key."""
        self.counted_as = key
        """The API key under which the request is counted; a follower's Fetch has another key."""
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.size_bytes = size_bytes
        """The size of the request's frame."""
        self.is_large = False
        """True if a thread encodes the answer, which may have many entries."""
        self.started_ns = connection.received_ns
        """The time at which its bytes were received, by the monotonic clock; requests of one read share it."""
        self.parked_ns = 0
        """The time at which its handler began to wait; 0 if it didn't wait."""
        self.throttle_ms = 0
        """The time for which its client, which is beyond a quota, is throttled."""
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

    def finish(self, answer: AnswerBuffers) -> AnswerBuffers:
        """Returns the answer to send, after the interceptors. Every answer passes once, after its handler and before
        its socket."""
        return self.connection.finish(self, answer)
