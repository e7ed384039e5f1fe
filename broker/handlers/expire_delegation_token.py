"""ExpireDelegationToken (40): sets the time at which a token expires, which may be now (KIP-48). Only its owner and its
renewers may do this, over a connection that may request tokens. v2 is flexible.
"""

from __future__ import annotations

from broker.exchange.authorisation import PUBLIC
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from broker.requests.call import HostCall
from broker.requests.token_requests import change_rejection, rejecting_here
from protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse

rejection = change_rejection(ExpireDelegationTokenResponse)


async def expire_delegation_token(call: HostCall[ExpireDelegationTokenRequest]) -> object:
    return rejection(call) or await by_controller(call)


API = Api(
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    expire_delegation_token,
    authorize=PUBLIC,
    here=rejecting_here(rejection),
)
