"""RenewDelegationToken (39): extends the expiry of a token, within its maximum lifetime (KIP-48). Only its owner and
its renewers may do this, over a connection that may request tokens. v2 is flexible.
"""

from __future__ import annotations

from broker.exchange.authorisation import PUBLIC
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from broker.requests.call import HostCall
from broker.requests.token_requests import change_rejection, rejecting_here
from protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

rejection = change_rejection(RenewDelegationTokenResponse)


async def renew_delegation_token(call: HostCall[RenewDelegationTokenRequest]) -> object:
    return rejection(call) or await by_controller(call)


API = Api(
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
    renew_delegation_token,
    authorize=PUBLIC,
    here=rejecting_here(rejection),
)
