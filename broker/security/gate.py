"""Decides whether a frame may be answered, on listeners that authenticate by SASL.

The gate comes before the dispatcher, and so before every fast path. Listeners without SASL have no gate, and no cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from librt.strings import read_i16_be

from broker.request.context import ClientConnection
from broker.request.eager import Waiting, begin
from broker.request.pending import Answer, Running
from broker.security.authentication import ALLOWED, Authentication, AuthenticationState
from protocol.api_key import ApiKey
from protocol.connection import SIZE
from protocol.errors import ProtocolError
from protocol.sasl.exchange import SaslError

AnswerFrame = Callable[[ClientConnection, memoryview], Answer]

HANDSHAKE: Final = int(ApiKey.SASL_HANDSHAKE)
KEY_BYTES: Final = 2

WHOM: Final = {
    AuthenticationState.UNAUTHENTICATED: "before authentication",
    AuthenticationState.MESSAGES: "during authentication",
    AuthenticationState.REFUSED: "after a failed authentication",
}


class SaslGate:
    """Answers the requests that a connection may send, and closes it after any other."""

    def __init__(self, answer: AnswerFrame) -> None:
        """`answer` answers the allowed requests."""
        self._answer = answer

    def answer(self, connection: ClientConnection, frame: memoryview) -> Answer:
        """Returns the answer to one frame. Raises ProtocolError, which closes the connection."""
        authentication = connection.authentication
        assert isinstance(authentication, Authentication)
        if authentication.state is AuthenticationState.RAW_MESSAGES:
            return _raw(authentication, frame)
        key = read_i16_be(bytes(frame[:KEY_BYTES]), 0) if len(frame) >= KEY_BYTES else -1
        if authentication.state is AuthenticationState.AUTHENTICATED:
            begins_again = key == HANDSHAKE and authentication.begin_again()
            if not begins_again and authentication.is_over:
                raise ProtocolError("the session has ended, and the client did not reauthenticate", offset=0)
        elif key not in ALLOWED[authentication.state]:
            if len(frame) and authentication.begin_by_token(frame[0]):
                return _raw(authentication, frame)
            name = ApiKey(key).name if key in ApiKey._value2member_map_ else f"API {key}"
            raise ProtocolError(f"{name} is not answered {_to_whom(authentication)}", offset=0)
        return self._answer(connection, frame)


def _raw(authentication: Authentication, frame: memoryview) -> Answer:
    """Answers a message without a header, whose answer has none either."""
    answer = begin(_answer_raw(authentication, bytes(frame)))
    return Running(_rest(answer)) if isinstance(answer, Waiting) else answer


async def _answer_raw(authentication: Authentication, message: bytes) -> Answer:
    """Returns the answer to a message without a header; a failing message gets none."""
    try:
        answer = (await authentication.step(message)).answer
    except SaslError as error:
        await authentication.delay_failure()
        raise ProtocolError(f"authentication by {authentication.mechanism} failed: {error.reason}", offset=0) from error
    return None if answer is None else [SIZE.pack(len(answer)), answer]


async def _rest(answer: Waiting[Answer]) -> Answer:
    return await answer


def _to_whom(authentication: Authentication) -> str:
    """Returns the state for an error message: some clients (aiokafka, kafkajs) take the rejection of a token for the
    end of its exchange."""
    if authentication.refusal:
        return f"after {authentication.mechanism} failed: {authentication.refusal}"
    return WHOM[authentication.state]
