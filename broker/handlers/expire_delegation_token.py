"""ExpireDelegationToken (40): sets the time at which a token expires, which may be now (KIP-48). Only its owner and its
renewers may do this, over a connection that may request tokens. v2 is flexible.
"""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api
from broker.handlers.renew_delegation_token import change
from broker.request.authorisation import PUBLIC
from protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse

API = Api(
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    answered_by=CONTROLLER,
    authorize=PUBLIC,
    here=change(ExpireDelegationTokenResponse),
)
