"""ExpireDelegationToken (40): sets the time at which a token expires, which may be now (KIP-48). Only its owner and its
renewers may, over a connection that may request tokens. v2 is flexible.
"""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.by_controller import by_controller
from broker.dispatch.call import HostCall
from broker.dispatch.token_requests import refused_change, refusing_here
from broker.request.authorisation import PUBLIC
from protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse

refusal = refused_change(ExpireDelegationTokenResponse)


async def expire_delegation_token(call: HostCall[ExpireDelegationTokenRequest]) -> object:
    return refusal(call) or await by_controller(call)


API = Api(
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    expire_delegation_token,
    authorize=PUBLIC,
    here=refusing_here(refusal),
)
