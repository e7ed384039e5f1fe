"""DescribeUserScramCredentials (50): describes users' SCRAM mechanisms, without their keys (KIP-554)."""

from __future__ import annotations

from broker.exchange.authorisation import DESCRIBE_CLUSTER
from broker.requests.api import Api
from broker.requests.call import HostCall
from broker.requests.rules import whole
from coordinator.cluster.security.scram_credentials import UserScramCredentials
from protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)


async def describe_user_scram_credentials(
    call: HostCall[DescribeUserScramCredentialsRequest],
) -> DescribeUserScramCredentialsResponse:
    credentials = UserScramCredentials(call.host.image, call.request)
    results = await call.turns().map(credentials.describe, credentials.users)
    return DescribeUserScramCredentialsResponse(error_code=0, error_message="", results=results)


API = Api(
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    describe_user_scram_credentials,
    authorize=whole(DESCRIBE_CLUSTER),
)
