"""ExpireDelegationToken (40): sets when a token ends, at once or later (KIP-48).

Its owner and its renewers may, over connections by which tokens may be asked for. v2 is flexible.
"""

from __future__ import annotations

from broker.exchange.authorisation import NOTHING
from broker.requests.api import Api
from broker.requests.call import HostCall
from broker.requests.token_requests import ERROR_TIMESTAMP, may_ask, refusing_here
from protocol.errors import ErrorCode
from protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse

NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


async def expire_delegation_token(call: HostCall[ExpireDelegationTokenRequest]) -> ExpireDelegationTokenResponse:
    requester = str(call.context.principal)
    return refusal(call) or await call.host.controller.expire_delegation_token(call.request, requester)


def refusal(call: HostCall[ExpireDelegationTokenRequest]) -> ExpireDelegationTokenResponse | None:
    """Returns the answer to a client that may not ask; None to others."""
    if may_ask(call):
        return None
    return ExpireDelegationTokenResponse(error_code=NOT_ALLOWED, expiry_timestamp_ms=ERROR_TIMESTAMP)


API = Api(
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    expire_delegation_token,
    NOTHING,
    here=refusing_here(refusal),
)
