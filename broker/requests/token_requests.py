"""The rules that all requests for delegation tokens share: which clients may send them, and over which connections.

Source: kafka.server.KafkaApis.allowTokenRequests, ControllerApis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from broker.exchange.authorisation import CREATE_TOKENS_USER
from broker.exchange.context import ANONYMOUS, ClientConnection
from broker.requests.api import Handle, Here
from broker.requests.call import HostCall
from coordinator.cluster.security.delegation_tokens import owner_of
from protocol.errors import ErrorCode
from protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from protocol.messages.expire_delegation_token import ExpireDelegationTokenResponse
from protocol.messages.renew_delegation_token import RenewDelegationTokenResponse

USER_PREFIX: Final = "User:"
ERROR_TIMESTAMP: Final = -1
"""The timestamps in the answer to a rejected token request (DelegationTokenManager.ErrorTimestamp)."""

Q = TypeVar("Q")
R = TypeVar("R", RenewDelegationTokenResponse, ExpireDelegationTokenResponse)


def may_ask(call: HostCall[Q]) -> bool:
    """True for a client that has authenticated, but not with a token: a token must not create or renew tokens."""
    return is_proven(call.connection) and not call.connection.by_token


def is_proven(connection: ClientConnection) -> bool:
    """True if the client authenticated with SASL or a certificate."""
    return connection.authentication is not None or connection.principal != ANONYMOUS


def creation_error(call: HostCall[CreateDelegationTokenRequest]) -> ErrorCode:
    """Returns the error of a token request; NONE if the token may be created. Only users can own tokens, because a
    token authenticates a user."""
    owner, requester = owner_of(call.request, str(call.context.principal)), str(call.context.principal)
    if not may_ask(call):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if owner != requester and not call.may(CREATE_TOKENS_USER, owner):
        return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    renewers = (f"{renewer.principal_type}:" for renewer in call.request.renewers)
    if not owner.startswith(USER_PREFIX) or any(kind != USER_PREFIX for kind in renewers):
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    return ErrorCode.NONE


def rejecting_here(rejection: Callable[[HostCall[Q]], object | None]) -> Here:
    """Returns the handler of a broker with remote controllers: they don't see the client's connection, so the broker
    rejects the request if the connection may not send it, and forwards it otherwise."""

    async def refuse_here(call: HostCall[Q], forward: Handle) -> object:
        return rejection(call) or await forward(call)

    return refuse_here


def change_rejection(response: type[R]) -> Callable[[HostCall[Q]], R | None]:
    """Returns the rule that rejects a change to a token over a connection that may not send token requests. It doesn't
    ask the authorizer, because only the token's key identifies the token."""

    def rejection(call: HostCall[Q]) -> R | None:
        if may_ask(call):
            return None
        return response(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=ERROR_TIMESTAMP)

    return rejection
