"""RenewDelegationToken (39): puts off the end of a token, within its longest life (KIP-48).

Its owner and its renewers may, over connections by which tokens may be asked for. v2 is flexible.
"""

from __future__ import annotations

from broker.exchange.authorisation import NOTHING
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from broker.requests.call import HostCall
from broker.requests.token_requests import refused_change, refusing_here
from protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

refusal = refused_change(RenewDelegationTokenResponse)


async def renew_delegation_token(call: HostCall[RenewDelegationTokenRequest]) -> object:
    return refusal(call) or await by_controller(call)


API = Api(
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
    renew_delegation_token,
    NOTHING,
    here=refusing_here(refusal),
)
