"""The one place that decides whether a frame may be answered at all: the door of listeners that authenticate by SASL.

It stands before the dispatcher, so before every short cut. Listeners without SASL have none, and pay nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from librt.strings import read_i16_be

from broker.exchange.context import ClientConnection
from broker.exchange.eager import Waiting, begin
from broker.exchange.pending import Answer, Running
from broker.security.authentication import ALLOWED, Authentication, AuthenticationState
from protocol.api_key import ApiKey
from protocol.connection import SIZE
from protocol.errors import ProtocolError
from protocol.sasl.exchange import SaslError

AnswerFrame = Callable[[ClientConnection, memoryview], Answer]

HANDSHAKE: Final = int(ApiKey.SASL_HANDSHAKE)
KEY_BYTES: Final = 2

WHOM: Final = {
    AuthenticationState.STRANGER: "to a stranger",
    AuthenticationState.MESSAGES: "while a client authenticates",
    AuthenticationState.REFUSED: "to one that is refused",
}


class SaslGate:
    """Lets through what a connection may ask, and closes it over anything else."""

    def __init__(self, answer: AnswerFrame) -> None:
        """`answer` answers the requests that are let through."""
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
                raise ProtocolError("its session has ended, and it did not authenticate again", offset=0)
        elif key not in ALLOWED[authentication.state]:
            if len(frame) and authentication.begin_by_token(frame[0]):
                return _raw(authentication, frame)
            name = ApiKey(key).name if key in ApiKey._value2member_map_ else f"API {key}"
            raise ProtocolError(f"{name} is not answered {_to_whom(authentication)}", offset=0)
        return self._answer(connection, frame)


def _raw(authentication: Authentication, frame: memoryview) -> Answer:
    """Answers a message that has no header, nor has its answer."""
    answer = begin(_answer_raw(authentication, bytes(frame)))
    return Running(_rest(answer)) if isinstance(answer, Waiting) else answer


async def _answer_raw(authentication: Authentication, message: bytes) -> Answer:
    """Returns the answer to such a message; one that fails gets none."""
    try:
        answer = (await authentication.step(message)).answer
    except SaslError as error:
        await asyncio.sleep(authentication.delay_ms / 1000)
        raise ProtocolError(f"authentication by {authentication.mechanism} failed: {error.reason}", offset=0) from error
    return None if answer is None else [SIZE.pack(len(answer)), answer]


async def _rest(answer: Waiting[Answer]) -> Answer:
    return await answer


def _to_whom(authentication: Authentication) -> str:
    """Returns who asks: some clients (aiokafka, kafkajs) take the refusal of a token for the end of its exchange."""
    if authentication.refusal:
        return f"to one that {authentication.mechanism} has refused: {authentication.refusal}"
    return WHOM[authentication.state]
