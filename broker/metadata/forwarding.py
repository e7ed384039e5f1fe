"""Forwards requests in Envelopes: the active controller gets a client's request unchanged, with the client's principal
and address (KIP-590).

Source: Kafka's ForwardingManager, EnvelopeRequest, DefaultKafkaPrincipalBuilder.
"""

from __future__ import annotations

import socket
from typing import Final

from broker.metadata.controllers import Controllers
from coordinator.cluster.requester import Requester
from protocol.codec import encode
from protocol.errors import ErrorCode, KafkaError, ProtocolError, error_code
from protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from protocol.messages.header import RequestHeader
from protocol.messages.principal import DefaultPrincipalData
from protocol.primitives import read_uvarint
from protocol.schema import identity

FORWARD_MS: Final = 60_000
"""Timeout of a forwarded request (request.timeout.ms of the channel from Kafka's brokers to the controller)."""

PRINCIPAL_VERSION: Final = 0
CORRELATION_BYTES: Final = 4
UNKNOWN_ADDRESS: Final = bytes(4)


def address_bytes(host: str) -> bytes:
    """Returns the address as Java encodes it, in 4 or 16 bytes; 0.0.0.0 if the host is not an IP address."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            return socket.inet_pton(family, host.partition("%")[0])
        except OSError:
            continue
    return UNKNOWN_ADDRESS


def envelope(request: object, version: int, requester: Requester) -> EnvelopeRequest:
    """Returns an envelope that names the client and contains the request with its header, as the client would send
    it.
    """
    api = identity(type(request))
    header = RequestHeader(
        request_api_key=api.key, request_api_version=version, correlation_id=0, client_id=requester.client_id
    )
    data = encode(header, 2 if version >= api.flexible.first else 1) + encode(request, version)
    principal = DefaultPrincipalData(type=requester.kind, name=requester.name, token_authenticated=requester.by_token)
    return EnvelopeRequest(
        request_data=data,
        request_principal=PRINCIPAL_VERSION.to_bytes(2) + encode(principal, PRINCIPAL_VERSION),
        client_host_address=address_bytes(requester.host),
    )


def body(response: EnvelopeResponse, request: object, version: int) -> bytes:
    """Returns the body of the response in the envelope. Raises KafkaError: UNSUPPORTED_VERSION if the controller
    doesn't know the request in this version, otherwise UNKNOWN_SERVER_ERROR, because the error is not the client's.
    """
    code = error_code(response.error_code)
    if code is ErrorCode.UNSUPPORTED_VERSION:
        raise KafkaError(code)
    if code or response.response_data is None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the controller rejected a forwarded request: {code.name}")
    data = response.response_data
    position = CORRELATION_BYTES
    if version >= identity(type(request)).flexible.first:
        tags, position = read_uvarint(data, position)
        if tags:
            raise ProtocolError("the response to a forwarded request has tags in its header", offset=CORRELATION_BYTES)
    return bytes(data[position:])


async def forward(controllers: Controllers, request: object, version: int, requester: Requester) -> bytes:
    """Returns the body of the controller's response to a request. Raises KafkaError."""
    wrapped = envelope(request, version, requester)
    response = await controllers.send(wrapped, EnvelopeResponse, FORWARD_MS, lambda answer: answer.error_code)
    try:
        return body(response, request, version)
    except (ProtocolError, IndexError) as error:
        message = f"the controller's response to a forwarded request cannot be read: {error}"
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message) from error
