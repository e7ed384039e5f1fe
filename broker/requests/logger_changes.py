"""Changes of loggers in IncrementalAlterConfigs: the broker that receives the request sets its own levels (KIP-412);
the controller handles the rest.

Source: kafka.server.ConfigAdminManager, its preprocessing.
"""

from __future__ import annotations

from collections import Counter

from broker.exchange.authorisation import ALTER_CONFIGS_CLUSTER
from broker.requests.api import Handle
from broker.requests.call import HostCall
from broker.requests.logger_levels import set_levels
from coordinator.cluster.configs.alter import check_form, requested_incrementally
from coordinator.cluster.configs.resource import ResourceType
from coordinator.cluster.decided import error_message
from protocol.codec import decode
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def set_own_loggers(call: HostCall[IncrementalAlterConfigsRequest], handle: Handle) -> object:
    """Returns the answers for all resources, in their order; `handle` has the controller answer for resources other
    than loggers."""
    resources = call.request.resources
    counts = Counter((resource.resource_type, resource.resource_name) for resource in resources)

    def own(resource: AlterConfigsResource) -> AlterConfigsResourceResponse | None:
        is_own = counts[resource.resource_type, resource.resource_name] == 1 and is_logger(resource)
        return answer_to(call, resource) if is_own else None

    answers = await call.turns().map(own, resources)
    if not any(answers):
        return await handle(call)
    call.request.resources = [resource for resource, answer in zip(resources, answers, strict=True) if answer is None]
    others = await answers_of_controller(call, handle) if call.request.resources else []
    by_name = {(response.resource_type, response.resource_name): response for response in others}
    responses = [
        answer or by_name[resource.resource_type, resource.resource_name]
        for resource, answer in zip(resources, answers, strict=True)
    ]
    return IncrementalAlterConfigsResponse(responses=responses)


async def answers_of_controller(
    call: HostCall[IncrementalAlterConfigsRequest], handle: Handle
) -> list[AlterConfigsResourceResponse]:
    """Returns the answers of the controller, in this process or another."""
    response = await handle(call)
    if isinstance(response, bytes):
        response, _ = decode(IncrementalAlterConfigsResponse, call.version, response)
    responses: list[AlterConfigsResourceResponse] = response.responses
    return responses


def is_logger(resource: AlterConfigsResource) -> bool:
    """True for well-formed changes of loggers; the controller rejects malformed changes."""
    try:
        check_form(requested_incrementally(resource))
    except KafkaError:
        return False
    return ResourceType.of(resource.resource_type) is ResourceType.BROKER_LOGGER


def answer_to(
    call: HostCall[IncrementalAlterConfigsRequest], resource: AlterConfigsResource
) -> AlterConfigsResourceResponse:
    """Sets the levels of loggers here, and returns the answer."""
    code, message = ErrorCode.NONE, None
    try:
        if not call.may(ALTER_CONFIGS_CLUSTER):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        set_levels(resource, call.host.config.node_id, validate_only=call.request.validate_only)
    except KafkaError as error:
        code, message = error.code, error_message(error)
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
