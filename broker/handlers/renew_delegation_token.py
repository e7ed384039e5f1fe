"""RenewDelegationToken (39): extends the expiry of a token, within its maximum lifetime (KIP-48). Only its owner and
its renewers may, over a connection that may request tokens. v2 is flexible.
"""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.by_controller import by_controller
from broker.dispatch.call import HostCall
from broker.dispatch.token_requests import refused_change, refusing_here
from broker.request.authorisation import PUBLIC
from protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

refusal = refused_change(RenewDelegationTokenResponse)


async def renew_delegation_token(call: HostCall[RenewDelegationTokenRequest]) -> object:
    return refusal(call) or await by_controller(call)


API = Api(
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
    renew_delegation_token,
    authorize=PUBLIC,
    here=refusing_here(refusal),
)
