"""The authorization that consumer groups and share groups have in common, for members' heartbeats and for descriptions
of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from broker.dispatch.call import HostCall
from broker.dispatch.rules import each, every, in_order, itself, of_group, whole
from broker.request.authorisation import DESCRIBE_GROUP, DESCRIBE_TOPIC, READ_GROUP, inside
from protocol.errors import ErrorCode, KafkaError

Q = TypeVar("Q")
M = TypeVar("M")

HIDDEN: Final = KafkaError(
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    "The group has described topic(s) that the client is not authorized to describe.",
)
"""The error of a group with members that the client may not describe. Nothing else of the group is described."""

MEMBER: Final = in_order(
    whole(READ_GROUP, of_group, explains=True),
    every(DESCRIBE_TOPIC, lambda request: request.subscribed_topic_names or (), explains=True),
)
"""The rule of a member's heartbeat. The client needs DESCRIBE on the topics to which the member subscribes."""

DESCRIPTION: Final = in_order(
    each(DESCRIBE_GROUP, "group_ids", "groups", itself, explains=True),
    inside("for every topic of its members; otherwise the group has an error", DESCRIBE_TOPIC),
)
"""The rule of a description of groups, whose handler calls `may_describe_members`."""


async def may_describe_members(
    call: HostCall[Q], members: Iterable[M], topics_of: Callable[[M], Iterable[str]]
) -> bool:
    """True if the client may describe all topics of a group's members; otherwise the group is answered with HIDDEN."""
    names = {name for member in members for name in topics_of(member)}
    return names <= await call.permitted(DESCRIBE_TOPIC, names, quiet=True)
