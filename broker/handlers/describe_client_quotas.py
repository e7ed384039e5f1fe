"""DescribeClientQuotas (48): describes the quotas of the users, client ids and addresses that match (KIP-546).

v1 is flexible.
"""

from __future__ import annotations

from collections.abc import Mapping

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import DESCRIBE_CONFIGS_CLUSTER
from coordinator.cluster.rejections import error_message
from coordinator.cluster.security.client_quotas import EntityFilter, described
from coordinator.cluster.security.quota_limits import Entity
from protocol.errors import KafkaError
from protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntryData,
)


async def describe_client_quotas(call: Call[DescribeClientQuotasRequest]) -> DescribeClientQuotasResponse:
    matches = EntityFilter(call.request).matches

    def answer(quota: tuple[Entity, Mapping[str, float]]) -> EntryData | None:
        entity, values = quota
        return described(entity, values) if values and matches(entity) else None  # the last value may just be removed

    entries = await call.turns().find(answer, list(call.host.image.quotas.items()))
    call.announce(len(entries))
    return DescribeClientQuotasResponse(error_code=0, error_message="", entries=entries)


def rejection(_: DescribeClientQuotasRequest, error: KafkaError) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=error.code, error_message=error_message(error), entries=None)


API = Api(
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    describe_client_quotas,
    authorize=whole(DESCRIBE_CONFIGS_CLUSTER),
    reject=rejection,
)
