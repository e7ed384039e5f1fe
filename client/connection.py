"""The client's side of a connection to another broker, sans-IO: turns requests into bytes, and bytes into responses.

Methods take the time (monotonic milliseconds), and return the requests that have ended, with a response or an error.
`outgoing` returns the bytes to write; `alarm_ms` is the time at which to call `expire` if nothing else happens.

A connection first negotiates API versions (KIP-35, KIP-511), then runs the authenticators in order. After that it sends
requests in order, up to a limit of requests in flight. A broker answers the requests of a connection in order (protocol
guide, "Network"), so that a response belongs to the oldest request, or the peer breaks the protocol. A request that
timed out keeps its place, and its late response is dropped. If the oldest request gets no response within its timeout,
counted from when it became the oldest, the connection fails.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from client.codec import CORRELATION, ClientCodec
from client.errors import (
    ConnectionClosed,
    HandshakeFailed,
    PeerError,
    PeerUnavailable,
    RequestTimedOut,
    UnsupportedVersion,
)
from client.handshake import Authenticator, Handshake, Question
from client.pending import InFlightLimits, Pending, RequestOutcome, check_answered
from client.states import ConnectionEvent, ConnectionState, after
from client.versions import PeerVersions
from protocol.connection import FrameReader, Spares
from protocol.errors import ProtocolError
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.types import Buffer
from protocol.versions import ANY_VERSION

MAX_CORRELATION_ID: Final = 0x7FFFFFFF
ENDED: Final = frozenset({ConnectionState.CLOSING, ConnectionState.CLOSED})


class OutboundConnection:
    """The protocol state of a connection to `peer`, an address for error messages. Not reused after the connection."""

    def __init__(
        self,
        peer: str,
        *,
        client_id: str | None,
        hello: ApiVersionsRequest,
        authenticators: Iterable[Authenticator] = (),
        limits: InFlightLimits = InFlightLimits(),  # noqa: B008  # a tuple
    ) -> None:
        """Takes the first request as `hello`: this side's software and the expected peer (KIP-511, KIP-1242)."""
        self.peer = peer
        self.state = ConnectionState.CONNECTING
        self.error: PeerError | ProtocolError | None = None
        """The reason for closing the connection; None while it is open."""
        self.alarm_ms: int | None = None
        """The earliest time at which `expire` has work to do."""
        self.writable = True
        """True unless the transport's write buffer is full."""
        self._client_id = client_id
        self._handshake = Handshake(peer, hello, authenticators)
        self._limits = limits
        self._reader = FrameReader(limits.max_response_bytes, "max_response_bytes", Spares(1))
        self._codecs: dict[tuple[type, int], ClientCodec] = {}
        self._next_id = 0
        self._queue: deque[Pending] = deque()
        self._in_flight: deque[Pending] = deque()
        self._in_flight_bytes = 0
        self._out: list[Buffer] = []
        self._handshake_time = 0, 0
        """The handshake's deadline, and its timeout in milliseconds."""

    @property
    def versions(self) -> PeerVersions | None:
        """The API versions that the peer supports; None before the negotiation."""
        return self._handshake.versions

    @property
    def session_ms(self) -> int | None:
        """The lifetime of the authenticated session in milliseconds; None if it does not end."""
        return self._handshake.session_ms

    @property
    def unanswered(self) -> int:
        """Number of sent requests without a response, including those that timed out."""
        return len(self._in_flight)

    @property
    def idle(self) -> bool:
        """True while no request is queued or in flight."""
        return not self._in_flight and not self._queue

    # Requests.

    def connected(self, now_ms: int, deadline_ms: int) -> None:
        """Starts the handshake on an open stream. The connection fails if negotiation and authentication are not done
        at `deadline_ms`."""
        self.state = after(self.state, ConnectionEvent.CONNECTED)
        if self.state is ConnectionState.NEGOTIATING:
            self._handshake_time = deadline_ms, deadline_ms - now_ms
            self._say_hello()

    def request(
        self, request: object, response: type | None, *, now_ms: int, timeout_ms: int, max_version: int = ANY_VERSION
    ) -> tuple[Pending, list[RequestOutcome]]:
        """Sends a request when the limits allow it, in the highest version that both sides support, up to
        `max_version`. `response` is the response's class, or None for a Produce with acks=0."""
        check_answered(request, response)
        deadline_ms = now_ms + timeout_ms
        pending = Pending(request, response, max_version=max_version, deadline_ms=deadline_ms, timeout_ms=timeout_ms)
        if self.state in ENDED:
            return pending, [RequestOutcome(pending, None, self._ended(pending))]
        self._queue.append(pending)
        self._alarm_at(pending.deadline_ms)
        return pending, self._admit(now_ms)

    def abandon(self, pending: Pending) -> None:
        """Drops a queued request, or the response to a sent request, because the caller no longer waits for it."""
        pending.abandoned = True
        if not pending.sent and pending in self._queue:
            self._queue.remove(pending)

    def outgoing(self) -> list[Buffer]:
        """Returns the buffers to write next, in order. Each buffer is returned once."""
        out, self._out = self._out, []
        return out

    def pause_writing(self) -> None:
        """Stops sending requests until `resume_writing`."""
        self.writable = False

    def resume_writing(self, now_ms: int) -> list[RequestOutcome]:
        self.writable = True
        return self._admit(now_ms)

    # Reading.

    def target(self) -> memoryview | None:
        """Returns the buffer to read into before `filled` is called; None if the caller must read into its own buffer
        and pass that to `receive`."""
        if self._reader.is_full:
            self._reader.grow()  # a response to our own request may be large
        return self._reader.target()

    def receive(self, chunk: memoryview, now_ms: int) -> list[RequestOutcome]:
        """Processes received bytes. The caller may reuse the buffer afterwards: a response that keeps views gets a copy
        of its frame."""
        if self.state in ENDED:
            return []
        return self._frames(self._reader.cut(chunk), now_ms, borrowed=True)

    def filled(self, count: int, now_ms: int) -> list[RequestOutcome]:
        """Processes `count` bytes that were read into `target()`. A response that keeps views of them keeps the whole
        buffer."""
        if self.state in ENDED:
            return []
        return self._frames(self._reader.filled(count), now_ms, borrowed=False)

    # Ends.

    def expire(self, now_ms: int) -> list[RequestOutcome]:
        """Ends the requests that timed out, and the connection if its oldest request is overdue."""
        if self.alarm_ms is None or now_ms < self.alarm_ms:
            return []
        late = [p for p in (*self._in_flight, *self._queue) if p.deadline_ms <= now_ms and not p.abandoned]
        outcomes = [self._time_out(pending) for pending in late]
        self._queue = deque(pending for pending in self._queue if not pending.abandoned)
        if self._in_flight and self._in_flight[0].due_ms <= now_ms:
            oldest = self._in_flight[0]
            reason = f"{oldest.name} is not answered within {oldest.timeout_ms} ms"
            is_sent = self.state is ConnectionState.READY  # else only requests of the handshake were
            return outcomes + self.fail(PeerUnavailable(self.peer, reason, sent=is_sent))
        self.alarm_ms = None
        for pending in (*self._in_flight, *self._queue):
            if not pending.abandoned:
                self._alarm_at(pending.deadline_ms)
        if self._in_flight:
            self._alarm_at(self._in_flight[0].due_ms)
        return outcomes + self._admit(now_ms)

    def lost(self, error: Exception | None = None) -> list[RequestOutcome]:
        """Ends every request, after the stream has ended or could not be opened."""
        reason = "the peer closed the connection" if error is None else f"the connection is lost: {error}"
        outcomes = [] if self.state in ENDED else self.fail(PeerUnavailable(self.peer, reason))
        self.state = after(self.state, ConnectionEvent.LOST)
        return outcomes

    def close(self) -> list[RequestOutcome]:
        """Closes this side. Unanswered requests end with ConnectionClosed; the buffers of `outgoing` may still be
        sent."""
        return self.fail(ConnectionClosed(self.peer, "this side closed the connection"))

    def fail(self, error: PeerError | ProtocolError) -> list[RequestOutcome]:
        """Ends the connection, and every request on it, with this error."""
        self.state = after(self.state, ConnectionEvent.CLOSE)
        if self.error is not None:
            return []
        self.error = error
        self.alarm_ms = None
        self._handshake.close()
        unanswered = [pending for pending in (*self._in_flight, *self._queue) if not pending.abandoned]
        self._in_flight.clear()
        self._queue.clear()
        return [RequestOutcome(pending, None, self._ended(pending)) for pending in unanswered]

    def _ended(self, pending: Pending) -> PeerError:
        """Returns the error for a request on a connection that has ended."""
        error = self.error
        assert error is not None
        if isinstance(error, HandshakeFailed):
            return HandshakeFailed(self.peer, error.message, error.code)
        kind = ConnectionClosed if isinstance(error, ConnectionClosed) else PeerUnavailable
        reason = error.message if isinstance(error, PeerError) else f"it broke the protocol: {error}"
        return kind(self.peer, f"no answer to {pending.name}: {reason}", sent=pending.sent)

    def _time_out(self, pending: Pending) -> RequestOutcome:
        pending.abandoned = True
        what = "no answer to" if pending.sent else "no room to send"
        reason = f"{what} {pending.name} within {pending.timeout_ms} ms"
        return RequestOutcome(pending, None, RequestTimedOut(self.peer, reason, sent=pending.sent))

    def _alarm_at(self, when_ms: int) -> None:
        if self.alarm_ms is None or when_ms < self.alarm_ms:
            self.alarm_ms = when_ms

    # Sending.

    def _admit(self, now_ms: int) -> list[RequestOutcome]:
        """Sends queued requests in order, as far as the limits allow."""
        outcomes: list[RequestOutcome] = []
        while self._queue and self._has_room():
            pending = self._queue.popleft()
            if pending.deadline_ms <= now_ms:
                outcomes.append(self._time_out(pending))
                continue
            try:
                self._send(pending)
            except Exception as error:  # a request that can't be encoded, or has no common version: the caller's error
                outcomes.append(RequestOutcome(pending, None, error))
                continue
            if pending.response is None:
                outcomes.append(RequestOutcome(pending, None))
            elif len(self._in_flight) == 1:
                pending.due_ms = now_ms + pending.timeout_ms
        return outcomes

    def _has_room(self) -> bool:
        return (
            self.state is ConnectionState.READY
            and self.writable
            and len(self._in_flight) < self._limits.max_in_flight
            and self._in_flight_bytes < self._limits.max_in_flight_bytes
        )

    def _send(self, pending: Pending) -> None:
        """Appends a request to the output, and to the requests in flight if it gets a response."""
        codec = pending.codec or self._codec(pending)
        pending.codec = codec
        buffers, pending.size = codec.frame(pending.request, self._next_id)
        pending.correlation_id = self._next_id
        pending.request = None
        self._next_id = self._next_id + 1 if self._next_id < MAX_CORRELATION_ID else 0
        self._out += buffers
        if pending.response is not None:
            self._in_flight.append(pending)
            self._in_flight_bytes += pending.size

    def _codec(self, pending: Pending) -> ClientCodec:
        """Returns the codec of the highest common version, cached for all requests of a class."""
        codec = self._codecs.get((pending.kind, pending.max_version))
        # A Produce with acks=0 gets no response, so the codec's response class does not matter.
        if codec is None or (pending.response is not None and codec.response is not pending.response):
            assert self.versions is not None, "requests go out once versions are negotiated"
            version = self.versions.pick(self.peer, pending.kind, pending.max_version)
            codec = ClientCodec(pending.kind, pending.response, version, self._client_id)
            self._codecs[pending.kind, pending.max_version] = codec
        return codec

    # Responses.

    def _frames(self, frames: Sequence[memoryview], now_ms: int, *, borrowed: bool) -> list[RequestOutcome]:
        """Reads responses from whole frames. With `borrowed`, the frames are views of a buffer that will be reused."""
        outcomes: list[RequestOutcome] = []
        for frame in frames:
            self._answer(frame, now_ms, borrowed, outcomes)
            if self.state in ENDED:
                return outcomes
        if self._reader.error is not None:
            error = self._reader.error
            self._broken(ProtocolError(f"{self.peer}: {error.message}", offset=error.offset), outcomes)
            return outcomes
        outcomes += self._admit(now_ms)
        return outcomes

    def _answer(self, frame: memoryview, now_ms: int, borrowed: bool, outcomes: list[RequestOutcome]) -> None:
        """Reads a response, which must belong to the oldest request."""
        oldest = self._in_flight[0] if self._in_flight else None
        if (
            oldest is None
            or len(frame) < CORRELATION.size
            or oldest.correlation_id != CORRELATION.unpack_from(frame)[0]
        ):
            self._broken(self._stray(frame, oldest), outcomes)
            return
        assert oldest.codec is not None, "what was sent was encoded"
        try:
            if self.state is not ConnectionState.READY:
                self._handshake_answer(frame, oldest.codec, outcomes)
            elif not oldest.abandoned:
                owned = bytes(frame) if borrowed and oldest.codec.keeps_views else frame
                outcomes.append(RequestOutcome(oldest, oldest.codec.read(owned)))
        except ProtocolError as error:
            reason = f"{self.peer}: the answer to {oldest.name}: {error.message}"
            self._broken(ProtocolError(reason, offset=error.offset), outcomes)
            return
        if self.state not in ENDED:
            self._settle_oldest(now_ms)

    def _settle_oldest(self, now_ms: int) -> None:
        """Removes the oldest request, which is answered, and starts the time limit of the next."""
        self._in_flight_bytes -= self._in_flight.popleft().size
        if self._in_flight:
            oldest = self._in_flight[0]
            oldest.due_ms = max(oldest.deadline_ms, now_ms + oldest.timeout_ms)
            if oldest.abandoned:
                self._alarm_at(oldest.due_ms)

    def _stray(self, frame: memoryview, oldest: Pending | None) -> ProtocolError:
        """Returns the error for a frame that doesn't answer the oldest request."""
        due = "no request is unanswered" if oldest is None else f"{oldest.name} ({oldest.correlation_id}) is next"
        if len(frame) < CORRELATION.size:
            return ProtocolError(f"{self.peer}: an answer of {len(frame)} bytes has no header, {due}", offset=0)
        answered = CORRELATION.unpack_from(frame)[0]
        return ProtocolError(f"{self.peer}: an answer has correlation id {answered}, {due}", offset=0)

    def _broken(self, error: ProtocolError, outcomes: list[RequestOutcome]) -> None:
        """Ends the connection to a peer that breaks the protocol. The oldest request gets this error; the others end
        with the connection."""
        oldest = self._in_flight.popleft() if self._in_flight else None
        if oldest is not None and not oldest.abandoned:
            outcomes.append(RequestOutcome(oldest, None, error))
        outcomes += self.fail(error)

    # The handshake.

    def _say_hello(self) -> None:
        handshake = self._handshake
        codec = ClientCodec(ApiVersionsRequest, ApiVersionsResponse, handshake.hello_version, self._client_id)
        self._ask(Question(handshake.hello, ApiVersionsResponse), codec)

    def _ask(self, question: Question, codec: ClientCodec | None = None) -> None:
        """Sends a request of the handshake, with the handshake's deadline. No caller waits for its response."""
        request, response, max_version = question
        deadline_ms, timeout_ms = self._handshake_time
        pending = Pending(request, response, max_version=max_version, deadline_ms=deadline_ms, timeout_ms=timeout_ms)
        pending.abandoned = True
        pending.codec = codec
        self._send(pending)
        self._alarm_at(deadline_ms)

    def _handshake_answer(self, frame: memoryview, codec: ClientCodec, outcomes: list[RequestOutcome]) -> None:
        """Takes the next step of the handshake, or ends the connection. Raises ProtocolError for a malformed
        response."""
        try:
            if self.state is ConnectionState.AUTHENTICATING:
                self._authenticate(codec.read(frame))
            elif self._handshake.negotiate(frame):
                self.state = after(self.state, ConnectionEvent.NEGOTIATED)
                self._authenticate(None)
            else:
                self._say_hello()
        except HandshakeFailed as error:
            outcomes += self.fail(error)
        except UnsupportedVersion as unsupported:
            outcomes += self.fail(HandshakeFailed(self.peer, unsupported.message))

    def _authenticate(self, answer: object) -> None:
        question = self._handshake.authenticate(answer)
        if question is None:
            self.state = after(self.state, ConnectionEvent.AUTHENTICATED)
        else:
            self._ask(question)
