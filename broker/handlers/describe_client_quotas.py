"""DescribeClientQuotas (48): describes the quotas of the users, client ids and addresses that match (KIP-546).

v1 is flexible.
"""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import DESCRIBE_CONFIGS_CLUSTER
from coordinator.cluster.rejections import error_message
from coordinator.cluster.security.client_quotas import describe_client_quotas as described
from protocol.errors import KafkaError
from protocol.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse


async def describe_client_quotas(call: Call[DescribeClientQuotasRequest]) -> DescribeClientQuotasResponse:
    return described(call.host.image, call.request)


def rejection(_: DescribeClientQuotasRequest, error: KafkaError) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=error.code, error_message=error_message(error), entries=None)


API = Api(
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    describe_client_quotas,
    authorize=whole(DESCRIBE_CONFIGS_CLUSTER),
    reject=rejection,
)
