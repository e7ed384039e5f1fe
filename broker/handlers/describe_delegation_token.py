"""DescribeDelegationToken (41): returns tokens with their keys (KIP-48). A client sees the tokens that it owns,
requested or may renew; other tokens require DESCRIBE on the token, or DESCRIBE_TOKENS on its owner. v2 is flexible, v3
adds the user that requested a token (KIP-373).
"""

from __future__ import annotations

from typing import Final

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.handlers.create_delegation_token import may_request_tokens
from broker.request.authorisation import DESCRIBE_DELEGATION_TOKEN, DESCRIBE_TOKENS_USER, inside
from coordinator.cluster.security.delegation_tokens import described, is_described
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from protocol.metadata_records.security import DelegationTokenRecord


async def describe_delegation_token(call: Call[DescribeDelegationTokenRequest]) -> DescribeDelegationTokenResponse:
    secret_key = call.host.config.delegation_token_secret_key
    if not may_request_tokens(call):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if not secret_key:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)

    def may(token: DelegationTokenRecord) -> bool:
        return call.may(DESCRIBE_DELEGATION_TOKEN, token.token_id, quiet=True) or call.may(
            DESCRIBE_TOKENS_USER, token.owner, quiet=True
        )

    passes = is_described(call.request, str(call.context.principal), may)

    def answer(token: DelegationTokenRecord) -> DescribedDelegationToken | None:
        if not passes(token):
            return None
        call.count(1 + len(token.renewers))
        return described(token, secret_key)

    tokens = await call.turns().find(answer, list(call.host.image.delegation_tokens))
    return DescribeDelegationTokenResponse(error_code=0, tokens=tokens)


HOW: Final = "for each token that the client neither owns nor may renew, or for its owner"

API = Api(
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    describe_delegation_token,
    authorize=inside(HOW, DESCRIBE_DELEGATION_TOKEN, DESCRIBE_TOKENS_USER),
)
