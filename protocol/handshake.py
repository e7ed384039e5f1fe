"""The handshake of two brokers before the first request: which versions they speak, then who they are.

Sans-IO, as a row of questions: `hello` is the first, and an answer gives the next one or None at the end. ApiVersions
comes first, since authenticators need to know how to speak; TLS lies below, in the transport.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import NamedTuple, TypeAlias

from protocol.errors import ErrorCode, KafkaError, ProtocolError, error_code
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.peer_errors import HandshakeFailed, PeerError
from protocol.peer_versions import OWN_API_VERSIONS, PeerVersions, downgraded, read_api_versions
from protocol.schema import ANY_VERSION


class Question(NamedTuple):
    """An authenticator's question: the request, the class of its answer, and the highest version to ask in."""

    request: object
    response: type
    max_version: int = ANY_VERSION


Dialogue: TypeAlias = Generator[Question, object, int | None]
"""An authenticator at work: yields questions, is sent their answers, returns when it is content, with the milliseconds
that the session lasts, if it does not last for ever. An exception ends the connection."""
Authenticator: TypeAlias = Callable[[PeerVersions], Dialogue]


class Handshake:
    """The handshake of one connection."""

    __slots__ = ("_authenticators", "_dialogue", "hello", "hello_version", "peer", "session_ms", "versions")

    def __init__(self, peer: str, hello: ApiVersionsRequest, authenticators: Iterable[Authenticator]) -> None:
        self.peer = peer
        self.hello = hello
        self.hello_version = OWN_API_VERSIONS.last
        """The version to say hello in; lower after a peer did not know it."""
        self.versions: PeerVersions | None = None
        """Once the peer has told them."""
        self.session_ms: int | None = None
        """How long the session lasts; None where it does not end."""
        self._authenticators = deque(authenticators)
        self._dialogue: Dialogue | None = None

    def negotiate(self, frame: memoryview) -> bool:
        """Reads the answer to hello; False when hello has to be sent once more, in `hello_version`.

        Raises HandshakeFailed when the peer refuses, ProtocolError when the frame is no answer.
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
        """Gives an authenticator the answer to its question, and returns the next question, or None when all are
        content.

        Raises HandshakeFailed when one is not, whatever it raised, and ProtocolError.
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
        except Exception as error:  # one of ours that fails: who waits for the connection learns of it
            reason = error.message if isinstance(error, PeerError) else f"{type(error).__name__}: {error}"
            raise HandshakeFailed(self.peer, reason) from error
        return None

    def close(self) -> None:
        """Closes the authenticator that is at work: no answer comes any more."""
        if self._dialogue is not None:
            self._dialogue.close()
            self._dialogue = None
