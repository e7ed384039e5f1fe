"""The rules that requests for delegation tokens share: who may ask for them, and over which connections.

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
"""The times of a token that a broker refuses (DelegationTokenManager.ErrorTimestamp)."""

Q = TypeVar("Q")
R = TypeVar("R", RenewDelegationTokenResponse, ExpireDelegationTokenResponse)


def may_ask(call: HostCall[Q]) -> bool:
    """True for a client that has proven who it is, by something else than a token: a token makes no others, and lives
    no longer by its own word."""
    return is_proven(call.connection) and not call.connection.by_token


def is_proven(connection: ClientConnection) -> bool:
    """True where the client authenticated by SASL, or by a certificate."""
    return connection.authentication is not None or connection.principal != ANONYMOUS


def refused_creation(call: HostCall[CreateDelegationTokenRequest]) -> ErrorCode:
    """Returns why a token is not made; NONE where it may be. Tokens are for users alone: who shows one is one."""
    owner, requester = owner_of(call.request, str(call.context.principal)), str(call.context.principal)
    if not may_ask(call):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if owner != requester and not call.may(CREATE_TOKENS_USER, owner):
        return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    renewers = (f"{one.principal_type}:" for one in call.request.renewers)
    if not owner.startswith(USER_PREFIX) or any(kind != USER_PREFIX for kind in renewers):
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    return ErrorCode.NONE


def refusing_here(refusal: Callable[[HostCall[Q]], object | None]) -> Here:
    """Returns what a broker does whose controllers are elsewhere: they see nothing of the client's connection, so it
    refuses what they would, and forwards the rest."""

    async def refuse_here(call: HostCall[Q], forward: Handle) -> object:
        return refusal(call) or await forward(call)

    return refuse_here


def refused_change(response: type[R]) -> Callable[[HostCall[Q]], R | None]:
    """Returns what answers a change to a token of a client that may not ask for any; None to others: only a token's key
    says which it is, so that nothing is asked of an authorizer."""

    def refusal(call: HostCall[Q]) -> R | None:
        if may_ask(call):
            return None
        return response(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=ERROR_TIMESTAMP)

    return refusal
