"""The guards of configs: of brokers and client metrics on the cluster, of topics and groups on themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from broker.exchange.authorisation import CLUSTER_NAME, Operation, Requirement, Resource
from broker.handlers import describe_configs as describe_configs_handler
from broker.requests.api import Handle
from broker.requests.call import HostCall
from broker.requests.forwarding import NamedResource
from coordinator.cluster.configs.resource import ResourceType
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResourceResponse, AlterConfigsResponse
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse as IncrementalResponse,
)
from protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

Q = TypeVar("Q")
R = TypeVar("R", bound=NamedResource)
A = TypeVar("A", AlterConfigsResourceResponse, IncrementalResponse)


class Owner(NamedTuple):
    """The resource on which the configs of another depend, and the error of who may not."""

    resource: Resource
    denied: ErrorCode


CLUSTER: Final = Owner(Resource.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
OWNERS: Final[Mapping[ResourceType, Owner]] = {
    ResourceType.BROKER: CLUSTER,
    ResourceType.BROKER_LOGGER: CLUSTER,
    ResourceType.CLIENT_METRICS: CLUSTER,
    ResourceType.TOPIC: Owner(Resource.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ResourceType.GROUP: Owner(Resource.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
}


def denied(call: HostCall[Q], operation: Operation, resource_type: int, name: str) -> KafkaError | None:
    """Returns the error of a resource that the client may not use so; None for types that do not exist."""
    owner = OWNERS.get(ResourceType.of(resource_type))
    if owner is None:
        return None
    of = CLUSTER_NAME if owner.resource is Resource.CLUSTER else name
    return None if call.may(Requirement(operation, owner.resource), of) else KafkaError(owner.denied)


async def describe_configs(call: HostCall[DescribeConfigsRequest], handle: Handle) -> DescribeConfigsResponse:
    request = call.request
    resources = request.resources
    if any(ResourceType.of(resource.resource_type) not in OWNERS for resource in resources):
        malformed: DescribeConfigsResponse = await handle(call)
        return malformed
    request.resources, refused = await divided(call, Operation.DESCRIBE_CONFIGS, resources)
    response: DescribeConfigsResponse = await handle(call)
    response.results += await call.turns().map(lambda one: describe_configs_handler.failed(*one), refused)
    return response


async def alter_configs(call: HostCall[AlterConfigsRequest], handle: Handle) -> AlterConfigsResponse:
    call.request.resources, refused = await divided(call, Operation.ALTER_CONFIGS, call.request.resources)
    response: AlterConfigsResponse = await handle(call)
    response.responses += await call.turns().map(lambda one: refusal(AlterConfigsResourceResponse, *one), refused)
    return response


async def incremental_alter_configs(
    call: HostCall[IncrementalAlterConfigsRequest], handle: Handle
) -> IncrementalAlterConfigsResponse:
    call.request.resources, refused = await divided(call, Operation.ALTER_CONFIGS, call.request.resources)
    response: IncrementalAlterConfigsResponse = await handle(call)
    response.responses += await call.turns().map(lambda one: refusal(IncrementalResponse, *one), refused)
    return response


async def divided(
    call: HostCall[Q], operation: Operation, resources: Sequence[R]
) -> tuple[list[R], list[tuple[R, KafkaError]]]:
    """Returns the resources on whose configs the client may do the operation, and the others with their errors."""
    errors = await call.turns().map(
        lambda resource: denied(call, operation, resource.resource_type, resource.resource_name), resources
    )
    permitted = [resource for resource, error in zip(resources, errors, strict=True) if error is None]
    refused = [(resource, error) for resource, error in zip(resources, errors, strict=True) if error is not None]
    return permitted, refused


def refusal(answer: type[A], resource: NamedResource, error: KafkaError) -> A:
    return answer(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
