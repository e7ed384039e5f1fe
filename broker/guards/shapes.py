"""The shapes that guards share: a request that is refused as a whole, one whose topics are refused one by one, and what
groups of both protocols with server-side assignment have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from operator import not_
from typing import Any, Final, Protocol, TypeVar

from broker.exchange.authorisation import CLUSTER_NAME, DESCRIBE_GROUP, DESCRIBE_TOPIC, READ_GROUP, Requirement
from broker.guards.operations import NOT_REQUESTED, group_operations
from broker.requests.api import Guard, Handle
from broker.requests.call import HostCall
from coordinator.group.modern.describe import undescribed
from protocol.errors import ErrorCode, KafkaError

Q = TypeVar("Q")
T = TypeVar("T")

GROUP_DENIED: Final = KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
TOPIC_DENIED: Final = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
UNREADABLE_TOPICS: Final = "The group has described topic(s) that the client is not authorized to describe."


class OfGroup(Protocol):
    """A request about a group."""

    group_id: str


class OfGroups(Protocol):
    """A request about groups."""

    group_ids: list[str]


class OfMember(OfGroup, Protocol):
    """A member's heartbeat."""

    subscribed_topic_names: list[str] | None


class Named(Protocol):
    """A topic of a request."""

    name: str


class OfTopics(Protocol):
    """A request about topics."""

    topics: list[Named]


def the_cluster(_request: object) -> str:
    """The name of what a request is about that is about the cluster."""
    return CLUSTER_NAME


def of_group(request: OfGroup) -> str:
    """The name of the group that a request is about."""
    return request.group_id


def whole(
    requirement: Requirement, refuse: Callable[[Any], object], name_of: Callable[[Any], str] = the_cluster
) -> Guard:
    """Returns a guard that refuses a request as a whole. `name_of` gives the resource that the request is about, and
    `refuse` the response to a call that is refused."""

    async def guard(call: HostCall[Q], handle: Handle) -> object:
        return await handle(call) if call.may(requirement, name_of(call.request)) else refuse(call)

    return guard


async def split(
    call: HostCall[Q], requirement: Requirement, topics: Sequence[T], name_of: Callable[[T], str | None]
) -> tuple[list[T], list[T]]:
    """Returns the topics that the client may use, and those that it may not; an id that is unknown is left to the
    handler."""

    def is_denied(topic: T) -> bool:
        name = name_of(topic)
        return name is not None and not call.may(requirement, name)

    denied = await call.turns().map(is_denied, topics)
    allowed = map(not_, denied)
    return list(compress(topics, allowed)), list(compress(topics, denied))


def each_topic(
    requirement: Requirement, refuse: Callable[[Any], object], is_answered: Callable[[Any], object] = lambda _: True
) -> Guard:
    """Returns a guard that refuses the topics of a request one by one. `refuse` gives the answer to a topic, where
    `is_answered` says that it has one."""

    async def guard(call: HostCall[OfTopics], handle: Handle) -> object:
        call.request.topics, denied = await split(call, requirement, call.request.topics, lambda topic: topic.name)
        response = await handle(call)
        response.topics += await call.turns().map(refuse, [topic for topic in denied if is_answered(topic)])
        return response

    return guard


def membership(failed: Callable[[KafkaError], object]) -> Guard:
    """Returns the guard of a heartbeat, to which `failed` gives the response."""

    async def guard(call: HostCall[OfMember], handle: Handle) -> object:
        """Lets members of the group in, subscribed to topics of which they may know."""
        topics = call.request.subscribed_topic_names or ()
        if not call.may(READ_GROUP, call.request.group_id):
            return failed(GROUP_DENIED)
        if len(await call.permitted(DESCRIBE_TOPIC, topics)) < len(set(topics)):
            return failed(TOPIC_DENIED)
        return await handle(call)

    return guard


def description(unknown: type, topics_of_member: Callable[[Any], Iterable[str]]) -> Guard:
    """Returns the guard of a description of groups; `unknown` is the class of a group in the response."""

    async def guard(call: HostCall[OfGroups], handle: Handle) -> object:
        """Describes the groups that one may describe, unless their members have topics of which one may not know."""
        requested = call.request.group_ids
        permitted = await call.permitted(DESCRIBE_GROUP, requested)
        call.request.group_ids = [name for name in requested if name in permitted]
        response = await handle(call)
        for group in response.groups:
            if group.authorized_operations != NOT_REQUESTED:
                group.authorized_operations = group_operations(call, group.group_id)
            names = {name for member in group.members for name in topics_of_member(member)}
            if not names <= await call.permitted(DESCRIBE_TOPIC, names, quiet=True):
                group.error_code, group.error_message, group.members = TOPIC_DENIED.code, UNREADABLE_TOPICS, []
        denied = [name for name in requested if name not in permitted]
        response.groups += await call.turns().map(lambda name: undescribed(unknown, name, GROUP_DENIED), denied)
        return response

    return guard
