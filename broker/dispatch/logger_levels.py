"""The levels of this process' loggers, as IncrementalAlterConfigs sets them (KIP-412).

They are not kept in the metadata: a restart forgets them.
Source: kafka.server.logger.RuntimeLoggerManager.
"""

from __future__ import annotations

from broker.logging import LEVELS, ROOT, get_logger, levels
from coordinator.cluster.configs.alter import OF_LISTS, AlterOperation
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from protocol.numbers import whole_number

log = get_logger("broker.requests")


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
        log.warning("the level of a logger is changed", of=change.name, level=change.value)


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
