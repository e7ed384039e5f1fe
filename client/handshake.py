"""The handshake with another broker before the first request: negotiates API versions, then authenticates.

Sans-IO, as a series of requests: `hello` is the first, and each response leads to the next request, or None at the end.
ApiVersions comes first, because authenticators need the versions. TLS is below, in the transport.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import NamedTuple, TypeAlias

from client.errors import HandshakeFailed, PeerError
from client.versions import OWN_API_VERSIONS, PeerVersions, downgraded, read_api_versions
from protocol.errors import ErrorCode, KafkaError, ProtocolError, error_code
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.versions import ANY_VERSION


class Question(NamedTuple):
    """A request of an authenticator, the class of its response, and the highest version to use."""

    request: object
    response: type
    max_version: int = ANY_VERSION


Dialogue: TypeAlias = Generator[Question, object, int | None]
"""A running authenticator: yields requests and receives their responses. On success it returns the session's lifetime
in milliseconds, or None for an unlimited session. An exception ends the connection."""
Authenticator: TypeAlias = Callable[[PeerVersions], Dialogue]


class Handshake:
    """The handshake of one connection."""

    __slots__ = ("_authenticators", "_dialogue", "hello", "hello_version", "peer", "session_ms", "versions")

    def __init__(self, peer: str, hello: ApiVersionsRequest, authenticators: Iterable[Authenticator]) -> None:
        self.peer = peer
        self.hello = hello
        self.hello_version = OWN_API_VERSIONS.last
        """The version of the ApiVersions request, lowered if the peer doesn't support it."""
        self.versions: PeerVersions | None = None
        """The peer's API versions; None before its response."""
        self.session_ms: int | None = None
        """The session's lifetime in milliseconds; None if it does not end."""
        self._authenticators = deque(authenticators)
        self._dialogue: Dialogue | None = None

    def negotiate(self, frame: memoryview) -> bool:
        """Reads the response to `hello`; False if `hello` must be sent again, in `hello_version`.

        Raises HandshakeFailed if the peer returns another error, ProtocolError for a malformed frame.
        """
        response = read_api_versions(frame, self.hello_version)
        code = error_code(response.error_code)
        if code == ErrorCode.UNSUPPORTED_VERSION:
            self.hello_version = downgraded(self.peer, response, self.hello_version)
            return False
        if code:
            raise HandshakeFailed(self.peer, f"answers ApiVersions with {code.name}: {code.message}", code)
        self.versions = PeerVersions.of(response)
        return True

    def authenticate(self, answer: object = None) -> Question | None:
        """Passes a response to the current authenticator, and returns the next request, or None after the last
        authenticator.

        Raises HandshakeFailed if an authenticator fails with any exception, and ProtocolError.
        """
        assert self.versions is not None, "negotiation goes first"
        try:
            while self._dialogue is not None or self._authenticators:
                if self._dialogue is None:
                    self._dialogue, answer = self._authenticators.popleft()(self.versions), None
                try:
                    return self._dialogue.send(answer)
                except StopIteration as ended:
                    self._dialogue = None
                    self.session_ms = ended.value or self.session_ms
        except (ProtocolError, HandshakeFailed):
            raise
        except KafkaError as error:
            raise HandshakeFailed(self.peer, str(error), error.code) from error
        except Exception as error:  # an authenticator's own failure, which waiting requests must get too
            reason = error.message if isinstance(error, PeerError) else f"{type(error).__name__}: {error}"
            raise HandshakeFailed(self.peer, reason) from error
        return None

    def close(self) -> None:
        """Closes the running authenticator, because no more responses will arrive."""
        if self._dialogue is not None:
            self._dialogue.close()
            self._dialogue = None
