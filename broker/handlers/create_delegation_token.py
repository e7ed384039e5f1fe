"""CreateDelegationToken (38): creates a delegation token, with which clients authenticate as its owner until it expires
(KIP-48).

v2 is flexible, v3 creates tokens for other users, which requires CREATE_TOKENS on the user (KIP-373). The controller
doesn't see the client's connection, so that the broker that received the request rejects what the connection may not
send. Source: kafka.server.KafkaApis.allowTokenRequests, ControllerApis.
"""

from __future__ import annotations

from typing import Final, TypeVar

from broker.dispatch.api import CONTROLLER, Api, Handle
from broker.dispatch.call import Call
from broker.request.authorisation import CREATE_TOKENS_USER, inside
from broker.request.context import ANONYMOUS
from coordinator.cluster.security.delegation_tokens import created, owner_of
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse

USER_PREFIX: Final = "User:"
ERROR_TIMESTAMP: Final = -1
"""The timestamps in the answer to a rejected token request (DelegationTokenManager.ErrorTimestamp)."""

Q = TypeVar("Q")


async def create_delegation_token(call: Call[CreateDelegationTokenRequest], handle: Handle) -> object:
    requester = str(call.context.principal)
    owner = owner_of(call.request, requester)
    code = error_of(call, owner, requester)
    return created(code, owner, requester, ERROR_TIMESTAMP) if code else await handle(call)


def error_of(call: Call[CreateDelegationTokenRequest], owner: str, requester: str) -> ErrorCode:
    """Returns the error of the request; NONE if the token may be created. Only users can own tokens, because a token
    authenticates a user."""
    if not may_request_tokens(call):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if owner != requester and not call.may(CREATE_TOKENS_USER, owner):
        return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    renewers = (f"{renewer.principal_type}:" for renewer in call.request.renewers)
    if not owner.startswith(USER_PREFIX) or any(kind != USER_PREFIX for kind in renewers):
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    return ErrorCode.NONE


def may_request_tokens(call: Call[Q]) -> bool:
    """True for a client that authenticated with SASL or a certificate, but not with a token: a token must not create or
    renew tokens."""
    connection = call.connection
    is_authenticated = connection.authentication is not None or connection.principal != ANONYMOUS
    return is_authenticated and not connection.by_token


def rejection(_: CreateDelegationTokenRequest, error: KafkaError) -> CreateDelegationTokenResponse:
    return created(error.code, str(ANONYMOUS), str(ANONYMOUS), ERROR_TIMESTAMP)


API = Api(
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    answered_by=CONTROLLER,
    authorize=inside("for the owner of the token, unless it is the client itself", CREATE_TOKENS_USER),
    here=create_delegation_token,
    reject=rejection,
)
