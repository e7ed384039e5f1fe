"""DescribeUserScramCredentials (50): describes users' SCRAM mechanisms, without their keys (KIP-554)."""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import DESCRIBE_CLUSTER
from coordinator.cluster.security.scram_credentials import UserScramCredentials
from protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)


async def describe_user_scram_credentials(
    call: Call[DescribeUserScramCredentialsRequest],
) -> DescribeUserScramCredentialsResponse:
    credentials = UserScramCredentials(call.host.image, call.request)
    results = await call.turns().find(credentials.describe, credentials.users)
    call.announce(len(results))
    return DescribeUserScramCredentialsResponse(error_code=0, error_message="", results=results)


API = Api(
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    describe_user_scram_credentials,
    authorize=whole(DESCRIBE_CLUSTER),
)
