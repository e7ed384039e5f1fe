"""The authorization of configs: CLUSTER for the configs of brokers and client metrics, the topic or group itself for
its own configs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final, Protocol

from broker.exchange.authorisation import CLUSTER_NAME, AuthorizationRule, Operation, Requirement, Resource
from broker.requests.api import Handle
from broker.requests.call import HostCall
from broker.requests.rejection import RejectionBuilder
from broker.requests.rules import denial
from coordinator.cluster.configs.resource import ResourceType

OWNERS: Final[Mapping[ResourceType, Resource]] = {
    ResourceType.BROKER: Resource.CLUSTER,
    ResourceType.BROKER_LOGGER: Resource.CLUSTER,
    ResourceType.CLIENT_METRICS: Resource.CLUSTER,
    ResourceType.TOPIC: Resource.TOPIC,
    ResourceType.GROUP: Resource.GROUP,
}
"""The resources on which configs are authorized. Types that don't exist are left to the handler."""


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

    async def answer(call: HostCall[ConfigsRequest], handle: Handle) -> object:
        resources = call.request.resources
        if knows_all_types and any(ResourceType.of(resource.resource_type) not in OWNERS for resource in resources):
            return await handle(call)
        missing = list(zip(resources, await call.turns().map(partial(missing_on, call), resources), strict=True))
        call.request.resources = [resource for resource, requirement in missing if requirement is None]
        response = await handle(call)
        denied = [(resource, requirement) for resource, requirement in missing if requirement is not None]
        getattr(response, answered).extend(await call.turns().map(partial(rejection, call), denied))
        return response

    def rejection(call: HostCall[ConfigsRequest], denied: tuple[object, Requirement]) -> object:
        resource, requirement = denied
        builder = RejectionBuilder(call.version, denial(requirement), explains=True)
        return builder.entry_of(call.api.response, answered, resource)

    def missing_on(call: HostCall[ConfigsRequest], resource: NamedResource) -> Requirement | None:
        """Returns the permission that the client lacks; None if it is authorized, or if the type doesn't exist."""
        requirement = requirements.get(ResourceType.of(resource.resource_type))
        if requirement is None:
            return None
        name = CLUSTER_NAME if requirement.resource is Resource.CLUSTER else resource.resource_name
        return None if call.may(requirement, name) else requirement

    return AuthorizationRule((*dict.fromkeys(requirements.values()),), "for each resource in the request", answer)
