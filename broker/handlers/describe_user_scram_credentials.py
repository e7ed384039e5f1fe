"""DescribeUserScramCredentials (50): describes users' SCRAM mechanisms, without their keys (KIP-554)."""

from __future__ import annotations

from broker.exchange.authorisation import DESCRIBE_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.call import HostCall
from coordinator.cluster.security.scram_credentials import describe_user_scram_credentials as described
from protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)


async def describe_user_scram_credentials(
    call: HostCall[DescribeUserScramCredentialsRequest],
) -> DescribeUserScramCredentialsResponse:
    return described(call.host.image, call.request)


API = Api(
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    describe_user_scram_credentials,
    of_cluster(DESCRIBE_CLUSTER),
)
