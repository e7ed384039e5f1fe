"""AlterConfigs (33): replaces all dynamic configs of a resource, as tools before KIP-339 do.

v1 is as v0, v2 is flexible. A broker whose controllers are elsewhere rejects the changes that it must check itself, and
forwards the others. IncrementalAlterConfigs and DescribeConfigs are authorized by the same rule: CLUSTER for the
configs of brokers and client metrics, the topic or group itself for its own configs.
Source: Kafka's KafkaApis.handleAlterConfigsRequest, ConfigAdminManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import partial
from typing import Final, Protocol, TypeVar

from broker.dispatch.api import CONTROLLER, Api, Handle
from broker.dispatch.call import Call
from broker.dispatch.parts import PART_ENTRIES
from broker.dispatch.rejection import RejectionBuilder
from broker.dispatch.rules import denial
from broker.request.authorisation import CLUSTER_NAME, AuthorizationRule, Operation, Requirement, Resource
from coordinator.cluster.configs.resource import ResourceType
from protocol.codec import decode
from protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

OWNERS: Final[Mapping[ResourceType, Resource]] = {
    ResourceType.BROKER: Resource.CLUSTER,
    ResourceType.BROKER_LOGGER: Resource.CLUSTER,
    ResourceType.CLIENT_METRICS: Resource.CLUSTER,
    ResourceType.TOPIC: Resource.TOPIC,
    ResourceType.GROUP: Resource.GROUP,
}
"""The resources on which configs are authorized. Types that don't exist are left to the handler."""


C = TypeVar("C", AlterConfigsRequest, IncrementalAlterConfigsRequest)


async def reject_own(call: Call[C], handle: Handle) -> object:
    """Rejects changes that the controller can't check, before the others are forwarded. A controller in this process
    rejects them itself."""
    forwarding, resources = call.host.forwarding, call.request.resources
    if forwarding is None or not call.host.forwards:
        return await handle(call)
    own: dict[int, object] = {}
    turns = call.turns()
    for start in range(0, len(resources), PART_ENTRIES):
        await turns.next()
        part = copy(call.request)
        part.resources = resources[start : start + PART_ENTRIES]
        rejected = await forwarding.rejected_configs(part)
        own.update((start + index, answer) for index, answer in rejected.items())
    return await answered_in_part(call, own, handle)


async def answered_in_part(call: Call[C], own: Mapping[int, object], handle: Handle) -> object:
    """Returns the answers of this broker, by the positions of their resources in the request, and those that `handle`
    gives to the other resources, in the order of the request."""
    if not own:
        return await handle(call)
    requested = call.request.resources
    answer = call.api.response(responses=[])
    others = [resource for index, resource in enumerate(requested) if index not in own]
    if others:
        call.request = copy(call.request)
        call.request.resources = others
        answer = await handle(call)
        if isinstance(answer, bytes):
            answer, _ = decode(call.api.response, call.version, answer)
    answered = {(response.resource_type, response.resource_name): response for response in answer.responses}
    answer.responses = [
        own[index] if index in own else answered[resource.resource_type, resource.resource_name]
        for index, resource in enumerate(requested)
    ]
    return answer


class NamedResource(Protocol):
    """A resource of a request about configs."""

    resource_type: int
    resource_name: str


class ConfigsRequest(Protocol):
    """A request about configs."""

    resources: list[NamedResource]


def of_configs(operation: Operation, answered: str, *, knows_all_types: bool = False) -> AuthorizationRule:
    """Returns the rule of requests about configs; `answered` is the field of the response with the resources. With
    `knows_all_types` a request with an unknown type is the handler's, which rejects all of it."""
    requirements = {kind: Requirement(operation, owner) for kind, owner in OWNERS.items()}

    async def answer(call: Call[ConfigsRequest], handle: Handle) -> object:
        resources = call.request.resources
        if knows_all_types and any(ResourceType.of(resource.resource_type) not in OWNERS for resource in resources):
            return await handle(call)
        missing = list(zip(resources, await call.turns().map(partial(missing_on, call), resources), strict=True))
        call.request.resources = [resource for resource, requirement in missing if requirement is None]
        response = await handle(call)
        denied = [(resource, requirement) for resource, requirement in missing if requirement is not None]
        getattr(response, answered).extend(await call.turns().map(partial(rejection, call), denied))
        return response

    def rejection(call: Call[ConfigsRequest], denied: tuple[object, Requirement]) -> object:
        resource, requirement = denied
        builder = RejectionBuilder(call.version, denial(requirement), explains=True)
        return builder.entry_of(call.api.response, answered, resource)

    def missing_on(call: Call[ConfigsRequest], resource: NamedResource) -> Requirement | None:
        """Returns the permission that the client lacks; None if it is authorized, or if the type doesn't exist."""
        requirement = requirements.get(ResourceType.of(resource.resource_type))
        if requirement is None:
            return None
        name = CLUSTER_NAME if requirement.resource is Resource.CLUSTER else resource.resource_name
        return None if call.may(requirement, name) else requirement

    return AuthorizationRule((*dict.fromkeys(requirements.values()),), "for each resource in the request", answer)


API = Api(
    AlterConfigsRequest,
    AlterConfigsResponse,
    answered_by=CONTROLLER,
    authorize=of_configs(Operation.ALTER_CONFIGS, "responses"),
    here=reject_own,
)
