"""IncrementalAlterConfigs (44): sets, deletes, appends to and subtracts from single configs (KIP-339).

v1 is flexible. The broker that receives the request sets the levels of its own loggers (KIP-412), which are not kept in
the metadata: a restart forgets them. The controller answers the rest.
Source: kafka.server.ConfigAdminManager, kafka.server.logger.RuntimeLoggerManager.
"""

from __future__ import annotations

from collections import Counter

from broker.dispatch.api import CONTROLLER, Api, Handle, before
from broker.dispatch.call import Call
from broker.handlers.alter_configs import answered_in_part, of_configs, reject_own
from broker.logging import LEVELS, ROOT, get_logger, levels
from broker.request.authorisation import ALTER_CONFIGS_CLUSTER, Operation
from coordinator.cluster.configs.alter import OF_LISTS, AlterOperation, check_form, requested_incrementally
from coordinator.cluster.configs.resource import ResourceType
from coordinator.cluster.rejections import error_message
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.numbers import whole_number

logger = get_logger(__name__)


async def set_own_loggers(call: Call[IncrementalAlterConfigsRequest], handle: Handle) -> object:
    """Returns the answers for all resources, in their order; `handle` has the controller answer for resources other
    than loggers."""
    resources = call.request.resources
    counts = Counter((resource.resource_type, resource.resource_name) for resource in resources)

    def own(resource: AlterConfigsResource) -> AlterConfigsResourceResponse | None:
        is_own = counts[resource.resource_type, resource.resource_name] == 1 and is_logger(resource)
        return answer_to(call, resource) if is_own else None

    answers = await call.turns().map(own, resources)
    by_index = {index: answer for index, answer in enumerate(answers) if answer is not None}
    return await answered_in_part(call, by_index, handle)


def is_logger(resource: AlterConfigsResource) -> bool:
    """True for well-formed changes of loggers; the controller rejects malformed changes."""
    try:
        check_form(requested_incrementally(resource))
    except KafkaError:
        return False
    return ResourceType.of(resource.resource_type) is ResourceType.BROKER_LOGGER


def answer_to(
    call: Call[IncrementalAlterConfigsRequest], resource: AlterConfigsResource
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


def set_levels(resource: AlterConfigsResource, node_id: int, *, validate_only: bool) -> None:
    """Sets the levels of loggers, all or none. Raises INVALID_REQUEST, INVALID_CONFIG."""
    check_node_id(resource.resource_name, node_id)
    for change in resource.configs:
        check(change)
    if validate_only:
        return
    for change in resource.configs:
        if change.config_operation == AlterOperation.SET and change.value is not None:
            levels.set(change.name, LEVELS[change.value])
        else:
            levels.unset(change.name)
        logger.warning("the level of a logger is changed", of=change.name, level=change.value)


def check_node_id(name: str, node_id: int) -> None:
    """Raises INVALID_REQUEST if the name of a resource is not this node's id."""
    number = whole_number(name)
    if number is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if number != node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {node_id}, but received {name}")


def check(change: AlterableConfig) -> None:
    """Raises INVALID_REQUEST, INVALID_CONFIG."""
    operation, name = change.config_operation, change.name
    if operation not in (AlterOperation.SET, AlterOperation.DELETE):
        is_known = operation in OF_LISTS
        what = f"{AlterOperation(operation).name} operation" if is_known else f"Unknown operation type {operation}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{what} is not allowed for the BROKER_LOGGER resource")
    if name not in levels:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == AlterOperation.SET and change.value not in LEVELS:
        message = (
            f"Cannot set the log level of {name} to {change.value} as it is not a supported log level. "
            f"Valid log levels are {', '.join(sorted(LEVELS))}"
        )
        raise KafkaError(ErrorCode.INVALID_CONFIG, message)
    if operation == AlterOperation.DELETE and name == ROOT:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed")


API = Api(
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    answered_by=CONTROLLER,
    authorize=of_configs(Operation.ALTER_CONFIGS, "responses"),
    here=lambda call, handle: set_own_loggers(call, before(reject_own, handle)),
)
