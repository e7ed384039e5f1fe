"""RenewDelegationToken (39): extends the expiry of a token, within its maximum lifetime (KIP-48). Only its owner and
its renewers may do this, over a connection that may request tokens. v2 is flexible.
"""

from __future__ import annotations

from typing import TypeVar

from broker.dispatch.api import CONTROLLER, Api, Handle, Here
from broker.dispatch.call import Call
from broker.handlers.create_delegation_token import ERROR_TIMESTAMP, may_request_tokens
from broker.request.authorisation import PUBLIC
from protocol.errors import ErrorCode
from protocol.messages.expire_delegation_token import ExpireDelegationTokenResponse
from protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

Q = TypeVar("Q")


def change(response: type[RenewDelegationTokenResponse] | type[ExpireDelegationTokenResponse]) -> Here:
    """Returns the handler of a change to a token, which rejects a connection that may not request tokens. It doesn't
    ask the authorizer, because only the token's key identifies the token."""

    async def change_token(call: Call[Q], handle: Handle) -> object:
        if may_request_tokens(call):
            return await handle(call)
        return response(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=ERROR_TIMESTAMP)

    return change_token


API = Api(
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
    answered_by=CONTROLLER,
    authorize=PUBLIC,
    here=change(RenewDelegationTokenResponse),
)
