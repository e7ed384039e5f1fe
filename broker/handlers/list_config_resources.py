"""ListConfigResources (74): lists the resources that have configs, by type.

v0 lists client metrics subscriptions (KIP-714, KIP-1000); v1 lists the requested types, or all types if the request
names none (KIP-1142).
"""

from __future__ import annotations

from collections.abc import Iterable

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import DESCRIBE_CONFIGS_CLUSTER
from coordinator.cluster.configs.resource import ResourceType
from coordinator.cluster.image import Image
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

ALL_TYPES = (
    ResourceType.GROUP,
    ResourceType.CLIENT_METRICS,
    ResourceType.BROKER_LOGGER,
    ResourceType.BROKER,
    ResourceType.TOPIC,
)


async def list_config_resources(call: Call[ListConfigResourcesRequest]) -> ListConfigResourcesResponse:
    codes: Iterable[int] = call.request.resource_types or ALL_TYPES
    if call.version == 0:
        codes = (ResourceType.CLIENT_METRICS,)
    types = [ResourceType.of(code) for code in dict.fromkeys(codes)]
    if ResourceType.UNKNOWN in types:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    resources = [
        ConfigResource(resource_name=name, resource_type=kind)
        for kind in dict.fromkeys(types)
        for name in resource_names(call.broker.image, kind)
    ]
    return ListConfigResourcesResponse(error_code=0, config_resources=resources)


def resource_names(image: Image, kind: ResourceType) -> list[str]:
    """Returns the names: all topics and brokers, and the groups and subscriptions that have a config set."""
    if kind is ResourceType.TOPIC:
        return image.topic_names()
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(broker_id) for broker_id in sorted(image.brokers)]
    return sorted(resource.name for resource in image.configured() if resource.type is kind)


API = Api(
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    list_config_resources,
    authorize=whole(DESCRIBE_CONFIGS_CLUSTER),
)
