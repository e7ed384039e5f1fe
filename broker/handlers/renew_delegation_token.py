"""RenewDelegationToken (39): puts off the end of a token, within its longest life (KIP-48).

Its owner and its renewers may, over connections by which tokens may be asked for. v2 is flexible.
"""

from __future__ import annotations

from broker.exchange.authorisation import NOTHING
from broker.requests.api import Api
from broker.requests.call import HostCall
from broker.requests.token_requests import ERROR_TIMESTAMP, may_ask, refusing_here
from protocol.errors import ErrorCode
from protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


async def renew_delegation_token(call: HostCall[RenewDelegationTokenRequest]) -> RenewDelegationTokenResponse:
    requester = str(call.context.principal)
    return refusal(call) or await call.host.controller.renew_delegation_token(call.request, requester)


def refusal(call: HostCall[RenewDelegationTokenRequest]) -> RenewDelegationTokenResponse | None:
    """Returns the answer to a client that may not ask; None to others."""
    if may_ask(call):
        return None
    return RenewDelegationTokenResponse(error_code=NOT_ALLOWED, expiry_timestamp_ms=ERROR_TIMESTAMP)


API = Api(
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
    renew_delegation_token,
    NOTHING,
    here=refusing_here(refusal),
)
