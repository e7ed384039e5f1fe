"""Denies the topics of a fetch that its client may not read: a consumer needs READ, a follower CLUSTER_ACTION.

A topic id that is unknown now stays unknown to the request: nothing has authorized the topic that it may become.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from broker.fetch.checks import topic_of
from broker.fetch.partition import FetchedPartition
from broker.fetch.request import ParsedFetch
from broker.replica.replicas import Replicas
from broker.request.authorisation import CLUSTER_NAME, Authorizer, Operation, Resource
from broker.request.context import Context
from protocol.errors import ErrorCode


def deny_unreadable(
    request: ParsedFetch,
    context: Context,
    authorizer: Authorizer,
    replicas: Replicas,
    partitions: Iterable[FetchedPartition],
) -> None:
    """Denies the topics of these partitions, which include the session's, that the client may not read now."""
    denied = unreadable(request, context, authorizer, replicas, partitions)
    if denied:
        request.deny(denied)


def unreadable(
    request: ParsedFetch,
    context: Context,
    authorizer: Authorizer,
    replicas: Replicas,
    partitions: Iterable[FetchedPartition],
) -> Mapping[bytes, ErrorCode]:
    """Returns the error of each topic that the client may not read, by the topic's key."""
    keys: dict[bytes, FetchedPartition] = {}
    for fetched in partitions:
        keys.setdefault(fetched.key, fetched)
    if request.replica is not None:
        may_replicate = authorizer.allows(context, Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME)
        return {} if may_replicate else dict.fromkeys(keys, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    errors: dict[bytes, ErrorCode] = {}
    for key, fetched in keys.items():
        name = topic_of(replicas, request, fetched)
        if name is None:
            errors[key] = ErrorCode.UNKNOWN_TOPIC_ID
        elif not authorizer.allows(context, Operation.READ, Resource.TOPIC, name):
            errors[key] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return errors
