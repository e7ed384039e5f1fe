"""TLS between a socket and a connection: a transport to the connection, and a protocol to the socket.

OpenSSL works on buffers in memory, so everything else stays as without TLS: admission comes before the handshake, all
connections read into shared buffers, bytes that a peer doesn't read stay unencrypted and uncopied, and a new connection
gets the certificates of that moment. Answers that are written together are encrypted together.

Source: org.apache.kafka.common.network.SslTransportLayer.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final, TypeAlias, cast

from broker.network.connection_view import ConnectionView
from protocol.errors import ProtocolError
from protocol.types import Buffer

READ_BYTES: Final = 256 * 1024
"""Maximum number of encrypted bytes in one read."""

PIECE_BYTES: Final = 64 * 1024
"""Maximum number of bytes that are decrypted, or encrypted, in one step. OpenSSL's buffers grow to this size, and stay
so large while the connection is open."""

WRITTEN_BYTES: Final = 256 * 1024
"""Number of encrypted bytes that are offered to the socket together. If the peer doesn't read, the rest stays
unencrypted."""

JOINED_BYTES: Final = 16 * 1024
"""Buffers up to this size are joined: it is the size of a TLS record, and each record has a header, a MAC and a
call."""


Ready: TypeAlias = Callable[[ConnectionView, bytes | None], None]
"""Called when the handshake is done, with the connection and the peer's certificate in DER, if it sent a certificate.
Raises ProtocolError."""

Refuse: TypeAlias = Callable[[ConnectionView, str], None]
"""Called with the reason when the handshake has failed; closes the connection once its peer has read the alert."""


class TlsState(Enum):
    """The states of a connection's TLS."""

    HANDSHAKE = "handshake"
    OPEN = "open"
    DRAINING = "draining"
    """Closes once the written bytes are sent; nothing more is read."""
    CLOSED = "closed"
    """Nothing is read or written. After a failed handshake the socket stays open, so that the peer can read the alert,
    until `close`."""


HANDSHAKE, OPEN, DRAINING, CLOSED = TlsState
"""The states as globals: each read and write compares several, and `TlsState.OPEN` is a call in Python 3.11."""

MAY_FOLLOW: Final[dict[TlsState, frozenset[TlsState]]] = {
    HANDSHAKE: frozenset({OPEN, DRAINING, CLOSED}),
    OPEN: frozenset({DRAINING, CLOSED}),
    DRAINING: frozenset({CLOSED}),
    CLOSED: frozenset({CLOSED}),
}


class TlsTransport:
    """One connection's TLS: an asyncio.BufferedProtocol by its methods, and a transport to the connection above it."""

    __slots__ = (
        "_backlog",
        "_buffer",
        "_connection",
        "_encrypted",
        "_incoming",
        "_is_paused",
        "_is_reading",
        "_outgoing",
        "_raw",
        "_ready",
        "_refuse",
        "_state",
        "_tls",
        "backlog_bytes",
    )  # fmt: skip

    def __init__(
        self,
        context: ssl.SSLContext,
        buffer: memoryview,
        make: Callable[[], ConnectionView],
        ready: Ready,
        refuse: Refuse,
    ) -> None:
        """`buffer` is shared by all connections: read bytes are decrypted before the next read starts."""
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._buffer = buffer
        self._connection = make()
        self._ready = ready
        self._refuse = refuse
        self._raw: asyncio.Transport = cast(asyncio.Transport, None)  # set before anything else is called
        self._backlog: deque[Buffer] = deque()
        self.backlog_bytes = 0
        """Bytes that wait to be encrypted."""
        self._encrypted: list[bytes] = []
        """What is offered to the socket next."""
        self._state = HANDSHAKE
        self._is_paused = False
        self._is_reading = True

    def _enter(self, state: TlsState) -> None:
        assert state in MAY_FOLLOW[self._state], f"{state.value} does not follow {self._state.value}"
        self._state = state

    # The protocol of the socket.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = cast(asyncio.Transport, transport)
        self._connection.connection_made(cast(asyncio.BaseTransport, self))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        for start in range(0, nbytes, PIECE_BYTES):
            if self.is_closing():
                return
            self._incoming.write(self._buffer[start : min(start + PIECE_BYTES, nbytes)])
            self._advance()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        """Also pauses reading while the peer doesn't read: TLS itself answers some messages (key updates,
        renegotiations), and these answers would not be counted."""
        self._is_paused = True
        self._update_reading()
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._is_paused = False
        self._update_reading()
        try:
            self._flush()
        except ssl.SSLError as error:
            self._broken(error)
        if self._backlog or self._is_paused:
            return
        if self._state is DRAINING:
            self._finish()
        else:
            self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._enter(CLOSED)
        self._backlog.clear()
        self.backlog_bytes = 0
        self._connection.connection_lost(exc)
        self._connection = cast(ConnectionView, None)  # the two refer to each other, and would wait for a collection

    # What arrives.

    def _advance(self) -> None:
        """Decrypts the received bytes as long as the connection reads."""
        try:
            if self._state is not HANDSHAKE or self._shake_hands():
                self._read()
        except ssl.SSLError as error:
            self._broken(error)
        except ProtocolError as error:
            self._connection.fail(error)
        if self._state is not CLOSED:
            self._send()

    def _shake_hands(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self._enter(OPEN)
        self._send()
        self._ready(self._connection, self._tls.getpeercert(binary_form=True))
        return self._state is not CLOSED

    def _read(self) -> None:
        while self._is_reading and self._state is not CLOSED:
            target = self._connection.get_buffer(-1)
            count, size = 0, len(target)
            is_last = False
            try:
                while count < size:
                    more = cast(int, self._tls.read(size - count, target[count:]))
                    if not more:  # the peer has sent close_notify
                        self._end_of_peer(count)
                        return
                    count += more
            except ssl.SSLWantReadError:
                is_last = True
            except ssl.SSLZeroReturnError:
                self._end_of_peer(count)
                return
            if count:
                self._connection.buffer_updated(count)
            if is_last:
                return

    def _end_of_peer(self, count: int) -> None:
        """Answers close_notify with close_notify, for which asyncio's clients wait half a minute."""
        if count:
            self._connection.buffer_updated(count)
        if self._state is not CLOSED:
            self._finish()

    def _broken(self, error: ssl.SSLError) -> None:
        reason = (error.reason or str(error)).lower().replace("_", " ")
        if self._state is not CLOSED:
            self._send()  # the alert
        if self._state is HANDSHAKE:
            self._enter(CLOSED)
            self._refuse(self._connection, f"the TLS handshake failed: {reason}")
        else:
            self._connection.fail(ProtocolError(f"TLS failed: {reason}", offset=0))

    # What is sent.

    def writelines(self, buffers: Iterable[Buffer]) -> None:
        """Encrypts and sends buffers in order, small buffers together."""
        if self.is_closing():
            return
        small: list[Buffer] = []
        for buffer in buffers:
            if len(buffer) <= JOINED_BYTES:
                small.append(buffer)
                continue
            self._keep_joined(small)
            small = []
            self._keep(buffer)
        self._keep_joined(small)
        try:
            self._flush()
        except ssl.SSLError as error:
            self._broken(error)

    def write(self, data: Buffer) -> None:
        self.writelines((data,))

    def _keep_joined(self, buffers: list[Buffer]) -> None:
        if buffers:
            self._keep(buffers[0] if len(buffers) == 1 else b"".join(buffers))

    def _keep(self, buffer: Buffer) -> None:
        self._backlog.append(buffer)
        self.backlog_bytes += len(buffer)

    def _flush(self) -> None:
        """Encrypts pieces of the backlog as long as the socket accepts them."""
        backlog, size = self._backlog, 0
        while backlog and not self._is_paused and (self._state is OPEN or self._state is DRAINING):
            buffer = backlog.popleft()
            if len(buffer) > PIECE_BYTES:
                view = memoryview(buffer)
                backlog.appendleft(view[PIECE_BYTES:])
                buffer = view[:PIECE_BYTES]
            self.backlog_bytes -= len(buffer)
            self._tls.write(buffer)
            self._encrypted.append(self._outgoing.read())
            size += len(buffer)
            if size >= WRITTEN_BYTES or not backlog:
                self._send()
                size = 0

    def _send(self) -> None:
        encrypted = self._encrypted
        if self._outgoing.pending:
            encrypted.append(self._outgoing.read())
        if encrypted:
            self._encrypted = []
            self._raw.writelines(encrypted)

    # The transport of the connection.

    def close(self) -> None:
        """Closes once the written bytes are sent."""
        if self._state is CLOSED:
            self._raw.close()  # a failed handshake has left it open
        elif self._state is not DRAINING:
            self._enter(DRAINING)
            if not self._backlog:
                self._finish()

    def abort(self) -> None:
        """Closes at once."""
        self._enter(CLOSED)
        self._raw.abort()

    def _finish(self) -> None:
        """Sends close_notify, so that the peer knows that nothing is missing, and doesn't wait for its answer."""
        with contextlib.suppress(ssl.SSLError):
            self._tls.unwrap()
        self._send()
        self._enter(CLOSED)
        self._raw.close()

    def pause_reading(self) -> None:
        self._is_reading = False
        self._update_reading()

    def resume_reading(self) -> None:
        """Resumes reading. Bytes that have already arrived are read first, but not within this call."""
        self._is_reading = True
        self._update_reading()
        asyncio.get_running_loop().call_soon(self._continue)

    def _update_reading(self) -> None:
        if self._raw.is_closing():
            return
        if self._is_reading and not self._is_paused:
            self._raw.resume_reading()
        else:
            self._raw.pause_reading()

    def _continue(self) -> None:
        if self._is_reading and not self.is_closing():
            self._advance()

    def is_reading(self) -> bool:
        return self._is_reading

    def is_closing(self) -> bool:
        return self._state is DRAINING or self._state is CLOSED

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._raw.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        return self._raw.get_write_buffer_size() + self.backlog_bytes

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._raw.set_write_buffer_limits(high, low)
