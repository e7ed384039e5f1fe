"""ExpireDelegationToken (40): sets when a token ends, at once or later (KIP-48).

Its owner and its renewers may, over connections by which tokens may be asked for. v2 is flexible.
"""

from __future__ import annotations

from broker.exchange.authorisation import NOTHING
from broker.requests.api import Api
from broker.requests.call import HostCall
from broker.requests.token_requests import refused_change, refusing_here
from protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse

refusal = refused_change(ExpireDelegationTokenResponse)


async def expire_delegation_token(call: HostCall[ExpireDelegationTokenRequest]) -> ExpireDelegationTokenResponse:
    requester = str(call.context.principal)
    return refusal(call) or await call.host.controller.expire_delegation_token(call.request, requester)


API = Api(
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    expire_delegation_token,
    NOTHING,
    here=refusing_here(refusal),
)
