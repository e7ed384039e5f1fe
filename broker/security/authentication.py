"""The authentication of one connection by SASL.

An unauthenticated connection is answered only ApiVersions and the messages of its authentication; the table ALLOWED has
the APIs of each state. Later the client may have to authenticate again, as long as its connection lasts (KIP-368).
Source: org.apache.kafka.common.security.authenticator.SaslServerAuthenticator, KafkaChannel.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from functools import partial
from typing import Final, NamedTuple

from broker.clock import NS_PER_MS, Clock, pause
from broker.config.listener_security import GSSAPI
from broker.request.context import ClientConnection, Principal
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode
from protocol.sasl.exchange import ExchangeStep, ProvenIdentity, SaslError, ServerExchange
from protocol.sasl.gssapi import INITIAL_TOKEN_TAG

MIN_REAUTHENTICATION_NS: Final = 1_000 * NS_PER_MS
"""Minimum time between a client's reauthentications: an earlier one would be wasted work (KafkaChannel)."""


class AuthenticationState(Enum):
    """The progress of a connection's authentication."""

    UNAUTHENTICATED = "unauthenticated"
    MESSAGES = "messages"
    """A mechanism is chosen; its messages arrive in SaslAuthenticate requests."""
    RAW_MESSAGES = "raw messages"
    """A mechanism is chosen; its messages arrive as frames without a request header (SaslHandshake v0)."""
    AUTHENTICATED = "authenticated"
    REFUSED = "refused"
    """Authentication failed: the client gets the error and is disconnected."""


ALLOWED: Final[Mapping[AuthenticationState, frozenset[int]]] = {
    AuthenticationState.UNAUTHENTICATED: frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}),
    AuthenticationState.MESSAGES: frozenset({ApiKey.SASL_AUTHENTICATE}),
    AuthenticationState.RAW_MESSAGES: frozenset(),
    AuthenticationState.REFUSED: frozenset(),
}
"""The APIs that are answered before a connection has authenticated."""


OffLoop = Callable[[Callable[[], ExchangeStep]], Awaitable[ExchangeStep]]
"""Runs a step of an exchange in a thread."""


class SaslMechanism(NamedTuple):
    """A SASL mechanism of a listener."""

    begin: Callable[[], ServerExchange]
    """Begins the exchange of a connection."""
    max_reauth_ms: int
    """The longest session in ms; 0 is no limit."""
    off_loop: OffLoop | None = None
    """Runs the steps of a mechanism that reads files; None for other mechanisms."""


class Previous(NamedTuple):
    """A connection's mechanism and principal before it reauthenticates: neither may change."""

    mechanism: str
    principal: Principal


class Authentication:
    """The authentication of one connection."""

    __slots__ = (
        "_clock",
        "_connection",
        "_delay_ms",
        "_exchange",
        "_last_ns",
        "_previous",
        "ends_ns",
        "mechanism",
        "mechanisms",
        "refusal",
        "state",
    )  # fmt: skip

    def __init__(
        self, connection: ClientConnection, mechanisms: Mapping[str, SaslMechanism], delay_ms: int, clock: Clock
    ) -> None:
        """`mechanisms` are the listener's; `delay_ms` delays the answer to a failed authentication."""
        self._connection = connection
        self._clock = clock
        self._exchange: ServerExchange | None = None
        self._previous: Previous | None = None
        self._last_ns = -MIN_REAUTHENTICATION_NS
        """The time of the last reauthentication."""
        self.mechanisms = mechanisms
        self.mechanism = ""
        self.refusal = ""
        """The reason why its last message was rejected, until the client acknowledges it, which not all clients do."""
        self._delay_ms = delay_ms
        self.state = AuthenticationState.UNAUTHENTICATED
        self.ends_ns = 0
        """The end of the session by the monotonic clock; 0 if it doesn't end."""

    async def delay_failure(self) -> None:
        """Returns when a failed authentication may be answered (connection.failed.authentication.delay.ms)."""
        await pause(self._clock, self._delay_ms)

    @property
    def is_repeated(self) -> bool:
        """True if the client had authenticated before on this connection."""
        return self._previous is not None

    @property
    def is_over(self) -> bool:
        """True once the session has ended; then only the first request of a reauthentication is answered."""
        return bool(self.ends_ns) and self._connection.received_ns > self.ends_ns

    def begin_again(self) -> bool:
        """Begins a reauthentication for a SaslHandshake. Returns False if the client needn't reauthenticate, or did so
        a moment ago.
        """
        now_ns = self._clock.monotonic_ns()
        if not self.ends_ns or now_ns - self._last_ns < MIN_REAUTHENTICATION_NS:
            return False
        self._last_ns = now_ns
        self._previous = Previous(self.mechanism, self._connection.principal)
        self.state = AuthenticationState.UNAUTHENTICATED
        return True

    def handshake(self, mechanism: str, version: int) -> ErrorCode:
        """Sets the mechanism that a client chooses."""
        if self.state is not AuthenticationState.UNAUTHENTICATED:
            return ErrorCode.ILLEGAL_SASL_STATE
        if mechanism not in self.mechanisms:
            self.state = AuthenticationState.REFUSED
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM
        self.mechanism = mechanism
        self._exchange = self.mechanisms[mechanism].begin()
        self.state = AuthenticationState.MESSAGES if version else AuthenticationState.RAW_MESSAGES
        return ErrorCode.NONE

    def begin_by_token(self, first_byte: int) -> bool:
        """Chooses GSSAPI if the first frame is a Kerberos token: clients of 0.9 send no SaslHandshake. Returns False if
        it isn't a token, or the listener has no GSSAPI."""
        is_token = first_byte == INITIAL_TOKEN_TAG and not self.is_repeated and GSSAPI in self.mechanisms
        return is_token and self.handshake(GSSAPI, version=0) is ErrorCode.NONE

    async def step(self, message: bytes) -> ExchangeStep:
        """Processes the next message of the mechanism. Raises SaslError; then the client gets the error and nothing
        else.
        """
        exchange = self._exchange
        assert exchange is not None, "a mechanism is chosen in the states in which messages come"
        try:
            self._check_mechanism()
            off_loop = self.mechanisms[self.mechanism].off_loop
            step = exchange.step(message) if off_loop is None else await off_loop(partial(exchange.step, message))
            self.refusal = step.refusal
            if step.identity is not None:
                self._become(step.identity)
        except SaslError:
            self.state = AuthenticationState.REFUSED
            raise
        return step

    def _check_mechanism(self) -> None:
        if self._previous is not None and self._previous.mechanism != self.mechanism:
            reason = (
                f"SASL mechanism '{self.mechanism}' requested by client is not supported for re-authentication of "
                f"mechanism '{self._previous.mechanism}'"
            )
            raise SaslError(reason, may_be_told=True)

    def _become(self, identity: ProvenIdentity) -> None:
        principal, previous = Principal("User", identity.name), self._previous
        if previous is not None and previous.principal != principal:
            before = f"{previous.principal.kind}.{previous.principal.name}"
            reason = f"Cannot change principals during re-authentication from {before}: User.{identity.name}"
            raise SaslError(reason, may_be_told=True)
        self._exchange = None
        self.state = AuthenticationState.AUTHENTICATED
        lifetime_ms = self._lifetime_ms(identity)
        self.ends_ns = 0 if lifetime_ms is None else self._clock.monotonic_ns() + lifetime_ms * NS_PER_MS
        self._connection.by_token = identity.by_token
        self._connection.authenticated(principal)

    def _lifetime_ms(self, identity: ProvenIdentity) -> int | None:
        """Returns the length of the session in ms: until the credential expires, or the client must reauthenticate;
        None if it doesn't end.
        """
        limit_ms = self.mechanisms[self.mechanism].max_reauth_ms
        limits = [limit_ms] if limit_ms > 0 else []
        if identity.expires_ms is not None:
            limits.append(identity.expires_ms - self._clock.now_ms())
        return max(0, min(limits)) if limits else None

    @property
    def lifetime_ms(self) -> int:
        """Returns the remaining ms of the session, for the client; 0 if it doesn't end."""
        return -(-max(0, self.ends_ns - self._clock.monotonic_ns()) // NS_PER_MS) if self.ends_ns else 0
