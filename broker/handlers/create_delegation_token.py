"""CreateDelegationToken (38): creates a delegation token, with which clients authenticate as its owner until it expires
(KIP-48).

v2 is flexible, v3 creates tokens for other users, which requires CREATE_TOKENS on the user (KIP-373). A broker without
a controller in its process rejects what it can, and forwards the rest.
"""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.by_controller import by_controller
from broker.dispatch.call import HostCall
from broker.dispatch.token_requests import ERROR_TIMESTAMP, refused_creation, refusing_here
from broker.request.authorisation import CREATE_TOKENS_USER, inside
from broker.request.context import ANONYMOUS
from coordinator.cluster.security.delegation_tokens import created, owner_of
from protocol.errors import KafkaError
from protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse


async def create_delegation_token(call: HostCall[CreateDelegationTokenRequest]) -> object:
    return refusal(call) or await by_controller(call)


def refusal(call: HostCall[CreateDelegationTokenRequest]) -> CreateDelegationTokenResponse | None:
    """Returns the answer that rejects the request; None if the token may be created."""
    if code := refused_creation(call):
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
    here=refusing_here(refusal),
)
