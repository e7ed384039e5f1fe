"""CreateDelegationToken (38): makes a token by which its owner, or who has it, authenticates for a while (KIP-48).

v2 is flexible, v3 makes tokens for others, which takes CREATE_TOKENS on the user (KIP-373). A broker whose controllers
are elsewhere refuses what it can, and forwards the rest.
"""

from __future__ import annotations

from broker.exchange.authorisation import CREATE_TOKENS_USER, by_handler
from broker.exchange.context import ANONYMOUS
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from broker.requests.call import HostCall
from broker.requests.token_requests import ERROR_TIMESTAMP, refused_creation, refusing_here
from coordinator.cluster.security.delegation_tokens import created, owner_of
from protocol.errors import KafkaError
from protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse


async def create_delegation_token(call: HostCall[CreateDelegationTokenRequest]) -> object:
    return refusal(call) or await by_controller(call)


def refusal(call: HostCall[CreateDelegationTokenRequest]) -> CreateDelegationTokenResponse | None:
    """Returns the answer that refuses a token; None where it may be made."""
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
    by_handler(CREATE_TOKENS_USER),
    refuse=refuse,
    here=refusing_here(refusal),
)
