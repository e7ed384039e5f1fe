"""The context of a request beside its body: its client, its listener, and its start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from protocol.primitives import AS_JAVA
from protocol.types import Buffer

Sent: TypeAlias = "list[Buffer] | None"
"""An answer's buffers; None where the client wants none (acks=0)."""


class Principal(NamedTuple):
    """A client's identity, as authorizers and quotas know it (org.apache.kafka.common.security.auth.KafkaPrincipal)."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
"""Everybody on a listener that does not authenticate."""


class ClientConnection:
    """A client's connection, as its requests know it."""

    __slots__ = (
        "_client_id",
        "_raw_client_id",
        "client_software",
        "closed",
        "finish",
        "ip",
        "listener_name",
        "on_close",
        "peer",
        "principal",
        "received_ns",
    )

    def __init__(self, listener_name: str, finish: Callable[[Context, Sent], Sent]) -> None:
        """`finish` is the way out of its answers."""
        self.listener_name = listener_name
        self.finish = finish
        self.principal = ANONYMOUS
        self.peer = ""
        """The client's address and port, for the log."""
        self.ip = ""
        self.client_software = ("unknown", "unknown")
        """Name and version, as ApiVersions has them."""
        self.received_ns = 0
        """The time of the last bytes, by the monotonic clock."""
        self.closed = False
        self.on_close: list[Callable[[ClientConnection], None]] = []
        """Called when the client is gone."""
        self._raw_client_id = b""
        self._client_id = ""

    def client_id(self, raw: bytes) -> str:
        """Returns the client id of a request's header. It hardly ever changes."""
        if raw != self._raw_client_id:
            self._client_id, self._raw_client_id = str(raw, "utf-8", AS_JAVA), raw
        return self._client_id


class Context:
    """One per request, made before anything of its body is looked at; in `Call`, and in every short cut."""

    __slots__ = ("client_id", "connection", "correlation_id", "key", "size_bytes", "started_ns", "version")

    def __init__(
        self, connection: ClientConnection, key: int, version: int, correlation_id: int, client_id: str | None,
        size_bytes: int,
    ) -> None:  # fmt: skip
        self.connection = connection
        self.key = key
        """The API's."""
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.size_bytes = size_bytes
        """Of the request's frame."""
        self.started_ns = connection.received_ns
        """The time when its bytes were read, by the monotonic clock; those of one read came together."""

    @property
    def principal(self) -> Principal:
        return self.connection.principal

    @property
    def listener(self) -> str:
        """The name of the listener that it came by."""
        return self.connection.listener_name

    @property
    def peer(self) -> str:
        """The client's address and port, for the log."""
        return self.connection.peer

    def finish(self, answer: Sent) -> Sent:
        """Returns the buffers to send of an answer: each goes this way once, after its handler and before its
        socket."""
        return self.connection.finish(self, answer)
