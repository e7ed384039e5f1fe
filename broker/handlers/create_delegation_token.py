"""CreateDelegationToken (38): creates a delegation token, with which clients authenticate as its owner until it expires
(KIP-48).

v2 is flexible, v3 creates tokens for other users, which requires CREATE_TOKENS on the user (KIP-373). A broker without
a controller in its process rejects what it can, and forwards the rest.
"""

from __future__ import annotations

from broker.exchange.authorisation import CREATE_TOKENS_USER, inside
from broker.exchange.context import ANONYMOUS
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from broker.requests.call import HostCall
from broker.requests.token_requests import ERROR_TIMESTAMP, creation_error, rejecting_here
from coordinator.cluster.security.delegation_tokens import created, owner_of
from protocol.errors import KafkaError
from protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse


async def create_delegation_token(call: HostCall[CreateDelegationTokenRequest]) -> object:
    return rejection(call) or await by_controller(call)


def rejection(call: HostCall[CreateDelegationTokenRequest]) -> CreateDelegationTokenResponse | None:
    """Returns the answer that rejects the request; None if the token may be created."""
    if code := creation_error(call):
        requester = str(call.context.principal)
        return created(code, owner_of(call.request, requester), requester, ERROR_TIMESTAMP)
    return None


def refuse(_: CreateDelegationTokenRequest, error: KafkaError) -> CreateDelegationTokenResponse:
    return created(error.code, str(ANONYMOUS), str(ANONYMOUS), ERROR_TIMESTAMP)


API = Api(
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    create_delegation_token,
    authorize=inside("for the owner of the token, unless it is the client itself", CREATE_TOKENS_USER),
    refuse=refuse,
    here=rejecting_here(rejection),
)
