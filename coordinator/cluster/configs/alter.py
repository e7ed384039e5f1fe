"""Decides on AlterConfigs and IncrementalAlterConfigs: either all changes of a resource are made, or none.

Source: Kafka's ControllerApis, ConfigurationControlManager and ControllerConfigurationValidator of 4.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeVar

import protocol.messages.alter_configs as legacy
import protocol.messages.incremental_alter_configs as incremental
from coordinator.cluster.brokers.features import MIN_ISR
from coordinator.cluster.configs.resource import ConfigResource, ResourceType
from coordinator.cluster.configs.rules import ConfigRules, check_length
from coordinator.cluster.image import Image
from coordinator.cluster.record import ClusterResult, MetadataRecord
from coordinator.cluster.rejections import error_message
from coordinator.engine.result import Ticket, answered
from protocol.errors import ErrorCode, KafkaError
from protocol.metadata_records.settings import ConfigRecord
from protocol.metadata_records.topics import ClearElrRecord
from protocol.numbers import whole_number


class AlterOperation(IntEnum):
    """The operation of IncrementalAlterConfigs on a config (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


OF_LISTS = frozenset({AlterOperation.APPEND, AlterOperation.SUBTRACT})
OPERATIONS = frozenset(AlterOperation)


class RequestedResource(NamedTuple):
    """A resource in a request, the names of its changes, and the names of changes that lack a required value."""

    type_code: int
    name: str
    keys: list[str]
    without_value: list[str]


def check_form(requested: RequestedResource) -> None:
    """Raises INVALID_REQUEST if a config is named twice, or a value is missing."""
    if len(set(requested.keys)) < len(requested.keys):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    if requested.without_value:
        message = f"Null value not supported for : {', '.join(requested.without_value)}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def requested_incrementally(resource: incremental.AlterConfigsResource) -> RequestedResource:
    """Returns a resource of IncrementalAlterConfigs."""
    keys = [config.name for config in resource.configs]
    without_value = [config for config in resource.configs if config.value is None]
    needing = [config.name for config in without_value if config.config_operation != AlterOperation.DELETE]
    return RequestedResource(resource.resource_type, resource.resource_name, keys, needing)


def _asked_wholly(resource: legacy.AlterConfigsResource) -> RequestedResource:
    keys = [config.name for config in resource.configs]
    needing = [config.name for config in resource.configs if config.value is None]
    return RequestedResource(resource.resource_type, resource.resource_name, keys, needing)


class AlteredResource(NamedTuple):
    """A resource of the request, and the error that kept it as it is."""

    type_code: int
    name: str
    error: KafkaError | None = None


def incremental_alter_configs(
    image: Image,
    request: incremental.IncrementalAlterConfigsRequest,
    ticket: Ticket[incremental.IncrementalAlterConfigsResponse],
    rules: ConfigRules,
    broker_id: int | None = None,
) -> ClusterResult:
    """Returns the decision on IncrementalAlterConfigs, which changes only the named configs of each resource.
    `broker_id` is the broker that received the request; None if the controller received it.
    """
    alteration = _Alteration(image, rules, broker_id=broker_id)
    results = alteration.alter_all(
        [requested_incrementally(resource) for resource in request.resources],
        lambda index, resource: alteration.incrementally(resource, request.resources[index].configs),
    )
    responses = _answers(incremental.AlterConfigsResourceResponse, results)
    records = () if request.validate_only else alteration.all_records()
    return answered(ticket, incremental.IncrementalAlterConfigsResponse(responses=responses), records)


def alter_configs(
    image: Image,
    request: legacy.AlterConfigsRequest,
    ticket: Ticket[legacy.AlterConfigsResponse],
    rules: ConfigRules,
    broker_id: int | None = None,
) -> ClusterResult:
    """Returns the decision on AlterConfigs, which replaces all configs of each resource by the named configs.
    `broker_id` is the broker that received the request; None if the controller received it.
    """
    alteration = _Alteration(image, rules, broker_id=broker_id)
    results = alteration.alter_all(
        [_asked_wholly(resource) for resource in request.resources],
        lambda index, resource: alteration.wholly(resource, request.resources[index].configs),
    )
    responses = _answers(legacy.AlterConfigsResourceResponse, results)
    records = () if request.validate_only else alteration.all_records()
    return answered(ticket, legacy.AlterConfigsResponse(responses=responses), records)


def refused_by_broker(
    image: Image,
    request: incremental.IncrementalAlterConfigsRequest | legacy.AlterConfigsRequest,
    rules: ConfigRules,
    node_id: int,
) -> dict[int, incremental.AlterConfigsResourceResponse] | dict[int, legacy.AlterConfigsResourceResponse]:
    """Returns the answers to the resources that a broker rejects before it forwards the others, by their position in
    the request: malformed changes, options of other brokers, and invalid values of its own options, which the
    controller can't check (ConfigAdminManager.preprocess).
    """
    if isinstance(request, legacy.AlterConfigsRequest):
        whole, by_place = _Alteration(image, rules, broker_id=node_id), request.resources
        results = whole.problems(
            [_asked_wholly(resource) for resource in by_place], lambda at, to: whole.wholly(to, by_place[at].configs)
        )
        return dict(zip(results, _answers(legacy.AlterConfigsResourceResponse, results.values()), strict=True))
    single, changes = _Alteration(image, rules, broker_id=node_id), request.resources
    results = single.problems(
        [requested_incrementally(resource) for resource in changes],
        lambda at, to: single.incrementally(to, changes[at].configs),
    )
    return dict(zip(results, _answers(incremental.AlterConfigsResourceResponse, results.values()), strict=True))


_Answer = TypeVar("_Answer", incremental.AlterConfigsResourceResponse, legacy.AlterConfigsResourceResponse)


def _answers(kind: type[_Answer], results: Iterable[AlteredResource]) -> list[_Answer]:
    return [
        kind(
            error_code=ErrorCode.NONE if error is None else error.code,
            error_message=None if error is None else error_message(error),
            resource_type=type_code,
            resource_name=name,
        )
        for type_code, name, error in results
    ]


class _Alteration:
    """The changes of one request."""

    def __init__(self, image: Image, rules: ConfigRules, *, broker_id: int | None = None) -> None:
        """`broker_id` is the broker that received the request, which rejects other brokers' options."""
        self._image = image
        self._broker_id = broker_id
        self._rules = rules
        self._records: list[ConfigRecord] = []

    def alter_all(
        self,
        resources: Sequence[RequestedResource],
        alter: Callable[[int, ConfigResource], list[ConfigRecord]],
    ) -> list[AlteredResource]:
        """Alters every resource that can be altered, and returns a result for each."""
        counts = Counter((requested.type_code, requested.name) for requested in resources)
        results = []
        for index, requested in enumerate(resources):
            try:
                if counts[requested.type_code, requested.name] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
                self._records += alter(index, self._resource(requested))
                results.append(AlteredResource(requested.type_code, requested.name))
            except KafkaError as error:
                results.append(AlteredResource(requested.type_code, requested.name, error.detached()))
        return results

    def problems(
        self, resources: Sequence[RequestedResource], alter: Callable[[int, ConfigResource], list[ConfigRecord]]
    ) -> dict[int, AlteredResource]:
        """Returns the results of the resources that are rejected, by their index. For brokers it checks the whole
        change, for other resources only that the change is well-formed."""

        def try_brokers(index: int, resource: ConfigResource) -> list[ConfigRecord]:
            return alter(index, resource) if resource.type is ResourceType.BROKER else []

        results = self.alter_all(resources, try_brokers)
        return {index: result for index, result in enumerate(results) if result.error is not None}

    def _resource(self, requested: RequestedResource) -> ConfigResource:
        """Returns the resource, if its changes are well-formed and it can be altered here (Kafka's
        ConfigAdminManager).
        """
        check_form(requested)
        resource = ConfigResource(ResourceType.of(requested.type_code), requested.name)
        if resource.type in (ResourceType.BROKER_LOGGER, ResourceType.UNKNOWN):  # a process sets its loggers' levels
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {requested.type_code}")
        if resource.type is ResourceType.BROKER and resource.name:
            self._check_broker(resource.name)
        return resource

    def _check_broker(self, name: str) -> None:
        """Raises KafkaError if this broker's options can't be altered here: such a request must be sent to the broker
        itself, which forwards it to the controller.
        """
        broker_id = whole_number(name)
        if broker_id is None:
            message = f"Node id must be an integer, but it is: {name}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        own_id = self._own_id
        if broker_id == own_id or (self._broker_id is None and broker_id in self._image.brokers):
            return
        if self._broker_id is not None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {own_id}, but received {name}")
        if len(self._image.brokers) > 1 or own_id not in self._image.brokers:
            raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No broker with id {name} found.")
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {own_id}, but received {name}")

    @property
    def _own_id(self) -> int:
        return self._image.controller_id if self._broker_id is None else self._broker_id

    def all_records(self) -> list[MetadataRecord]:
        """Returns the config records, and the records that a change of min.insync.replicas causes, because it may
        change which replicas are eligible leaders (KIP-966).
        """
        records: list[MetadataRecord] = [*self._records]
        if not self._image.elr_enabled:
            return records
        for record in self._records:
            if record.name == MIN_ISR:
                of_topic = record.resource_type == ResourceType.TOPIC
                records.append(ClearElrRecord(topic_name=record.resource_name if of_topic else ""))
        return records

    def incrementally(
        self, resource: ConfigResource, changes: Iterable[incremental.AlterableConfig]
    ) -> list[ConfigRecord]:
        changes = list(changes)
        self._check_operations(resource, changes)
        for change in changes:
            if change.config_operation != AlterOperation.DELETE:
                check_length(change.value)
        current = self._image.configs(resource)
        changed = []
        for name, change in {change.name: change for change in changes}.items():
            value = self._new_value(resource, change, current.get(name))
            if value != current.get(name) or resource.type is ResourceType.BROKER:
                changed.append(_record(resource, name, value))
        self._check(resource, changed, [])
        return changed

    def _check_operations(self, resource: ConfigResource, changes: Sequence[incremental.AlterableConfig]) -> None:
        """Raises KafkaError for an unknown operation, or for APPEND or SUBTRACT on an option that is not a list.

        A broker checks for unknown operations of its own configs first of all; a controller reports them only if it has
        found no other error.
        """
        checks = (self._check_lists, _check_known)
        for check in reversed(checks) if resource.type is ResourceType.BROKER else checks:
            check(resource, changes)

    def _check_lists(self, resource: ConfigResource, changes: Sequence[incremental.AlterableConfig]) -> None:
        for change in changes:
            if change.config_operation not in OF_LISTS:
                continue
            if self._rules.list_default(resource.type, change.name) is None:
                name = AlterOperation(change.config_operation).name
                message = f"Can't {name} to key {change.name} because its type is not LIST."
                if resource.type is ResourceType.BROKER:  # the broker finds this error, not the controller
                    message = f"Config value {name.lower()} is not allowed for config key: {change.name}"
                    if not self._rules.has_broker_option(change.name):
                        message = f"Unknown config name: {change.name}"
                raise KafkaError(ErrorCode.INVALID_CONFIG, message)

    def _new_value(
        self, resource: ConfigResource, change: incremental.AlterableConfig, current: str | None
    ) -> str | None:
        if change.config_operation == AlterOperation.SET:
            return change.value
        if change.config_operation == AlterOperation.DELETE:
            return None
        default = self._rules.list_default(resource.type, change.name)
        parts = [part for part in ((default or "") if current is None else current).split(",") if part]
        given = dict.fromkeys((change.value or "").split(","))
        if change.config_operation == AlterOperation.APPEND:
            return ",".join(dict.fromkeys([*parts, *given]))
        return ",".join(part for part in parts if part not in given)

    def wholly(self, resource: ConfigResource, configs: Iterable[legacy.AlterableConfig]) -> list[ConfigRecord]:
        current = self._image.configs(resource)
        new_values = {config.name: config.value for config in configs}
        for value in new_values.values():
            check_length(value)
        changed = [
            _record(resource, name, value)
            for name, value in new_values.items()
            if value != current.get(name) or resource.type is ResourceType.BROKER
        ]
        dropped = [_record(resource, name, None) for name in current if name not in new_values]
        self._check(resource, changed, dropped)
        return [*changed, *dropped]

    def _check(self, resource: ConfigResource, changed: list[ConfigRecord], dropped: list[ConfigRecord]) -> None:
        """Raises KafkaError if the resource doesn't exist, or may not have the configs that it would have after these
        records.
        """
        configs = dict(self._image.configs(resource))
        altered = (*changed, *dropped)
        for record in altered:
            if record.value is None:
                configs.pop(record.name, None)
            else:
                configs[record.name] = record.value
        if resource.type is ResourceType.BROKER:  # the broker has checked its own options before the controller does
            self._check_broker_options(resource, configs)
            self._check_records(resource, altered)
        else:
            self._check_records(resource, altered)
            self._rules.check(resource, configs)
        if resource.type is ResourceType.TOPIC and self._image.topic(resource.name) is None:
            message = f"The topic '{resource.name}' does not exist."
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)

    def _check_broker_options(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """Checks the options that this node knows. Another broker's options are not checked here: that broker has
        checked them, and may have other options (ControllerConfigurationValidator).
        """
        if self._broker_id is not None or resource.name == str(self._own_id):
            self._rules.check(resource, configs)
            return
        self._rules.check_name(resource)
        if not resource.name:
            self._rules.check_fallbacks(configs)

    def _check_records(self, resource: ConfigResource, records: Iterable[ConfigRecord]) -> None:
        for record in records:
            self._check_record(resource, record)

    def _check_record(self, resource: ConfigResource, record: ConfigRecord) -> None:
        if record.name == MIN_ISR and resource.type is ResourceType.BROKER and self._image.elr_enabled:
            if resource.name:
                message = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
                raise KafkaError(ErrorCode.INVALID_CONFIG, message)
            if not resource.name and record.value is None:
                message = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
                raise KafkaError(ErrorCode.INVALID_CONFIG, message)
        check_length(record.value)


def _check_known(_resource: ConfigResource, changes: Iterable[incremental.AlterableConfig]) -> None:
    for change in changes:
        if change.config_operation not in OPERATIONS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {change.config_operation}")


def _record(resource: ConfigResource, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
