"""Envelope (58): a broker forwards a client's request to the controller, unchanged, with the client's principal and
address (KIP-590).

The request inside is answered as if the client had sent it here. Errors of the envelope itself have their own codes.
Any error in the form of the request inside is UNSUPPORTED_VERSION, as in Kafka, so that a broker can distinguish the
two. Source: kafka.server.EnvelopeUtils.
"""

from __future__ import annotations

import asyncio
import socket
from struct import Struct
from typing import Final

from broker.dispatch.api import CONTROLLER, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.handlers import APIS
from broker.logging import get_logger
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from broker.request.context import AnswerBuffers, ClientConnection, Context, Principal
from broker.request.pending import Answer
from protocol.addresses import canonical
from protocol.api_key import ApiKey
from protocol.codec import MALFORMED, decode
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from protocol.messages.principal import DefaultPrincipalData
from protocol.schema import identity

SIZE_BYTES: Final = 4
"""Bytes of a frame's size field, which an envelope leaves out."""

API_KEY: Final = Struct(">h")
PRINCIPAL_VERSION: Final = Struct(">h")
FAMILIES: Final = {4: socket.AF_INET, 16: socket.AF_INET6}
"""The address family, by the size of the address."""

OF_VOTERS: Final = frozenset({ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER})
"""The APIs that the quorum answers: a leader that has removed itself no longer leads when its answer is sent."""

logger = get_logger(__name__)


async def envelope(call: Call[EnvelopeRequest]) -> EnvelopeResponse:
    request = call.request
    try:
        client = ClientConnection(call.context.listener, as_it_is)
        principal = principal_of(request.request_principal)
        client.principal = Principal(principal.type, principal.name)
        client.by_token = principal.token_authenticated
        client.ip = client.peer = address_of(request.client_host_address)
        frame = memoryview(request.request_data)
        check_forwardable(frame)
        changes_voters = API_KEY.unpack_from(frame)[0] in OF_VOTERS
        if changes_voters:
            check_active(call)
        try:
            buffers = await answered(call.host.answer_forwarded(client, frame))
            if not changes_voters:
                check_active(call)
        except ProtocolError as error:
            check_active(call)
            logger.warning(
                "a forwarded request was rejected", peer=call.context.peer, client=client.ip, reason=str(error)
            )
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION) from error
    except KafkaError as error:
        return EnvelopeResponse(response_data=None, error_code=error.code)
    return EnvelopeResponse(response_data=b"".join(buffers)[SIZE_BYTES:], error_code=ErrorCode.NONE)


def check_active(call: Call[EnvelopeRequest]) -> None:
    """Raises NOT_CONTROLLER if this controller no longer leads, regardless of the inner request's answer: the broker
    then sends the request to the new leader, and the client doesn't notice (RequestChannel)."""
    if call.host.controller.has_renounced:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)


def as_it_is(_: Context, answer: AnswerBuffers) -> AnswerBuffers:
    """Does nothing: the interceptors see the envelope's answer."""
    return answer


def principal_of(data: bytes | None) -> DefaultPrincipalData:
    """Returns the principal in an envelope. Raises KafkaError(PRINCIPAL_DESERIALIZATION_FAILURE)."""
    try:
        (version,) = PRINCIPAL_VERSION.unpack_from(data or b"")
        if version not in range(identity(DefaultPrincipalData).versions.last + 1):
            raise ProtocolError(f"a principal of version {version}", offset=0)
        principal, _ = decode(DefaultPrincipalData, version, (data or b"")[PRINCIPAL_VERSION.size :])
    except (ProtocolError, *MALFORMED) as error:
        raise KafkaError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE) from error
    return principal


def address_of(data: bytes) -> str:
    """Returns the client's address as text. Raises KafkaError(INVALID_REQUEST)."""
    family = FAMILIES.get(len(data))
    if family is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"a client's address of {len(data)} bytes")
    return canonical(socket.inet_ntop(family, data))


def check_forwardable(frame: memoryview) -> None:
    """Raises KafkaError for a request that no broker forwards: UNSUPPORTED_VERSION if its API doesn't exist."""
    if len(frame) < API_KEY.size:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    (key,) = API_KEY.unpack_from(frame)
    if key not in ApiKey._value2member_map_:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    row = APIS.find(key)
    if row is None or row.answered_by is not CONTROLLER:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{ApiKey(key).name} is not forwarded")


async def answered(answer: Answer) -> list[bytes | bytearray | memoryview]:
    """Waits for the buffers of an answer. Raises ProtocolError."""
    if isinstance(answer, list):
        return answer
    assert answer is not None  # only Produce has requests without an answer
    future: asyncio.Future[Answer | BaseException] = asyncio.get_running_loop().create_future()
    answer.begin(future.set_result)
    try:
        result = await future
    finally:
        answer.cancel()
    if isinstance(result, BaseException):
        raise result
    return await answered(result)


API = Api(EnvelopeRequest, EnvelopeResponse, envelope, authorize=whole(CLUSTER_ACTION_CLUSTER))
