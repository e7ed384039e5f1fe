"""Denies the topics of a fetch that its client may not read: a consumer needs READ, a follower CLUSTER_ACTION."""

from __future__ import annotations

from collections.abc import Sequence

from broker.fetch.doubtful import topic_of
from broker.fetch.partition import FetchedPartition
from broker.fetch.request import ParsedFetch
from broker.replica.replicas import Replicas
from broker.request.authorisation import CLUSTER_NAME, Authorizer, Operation, Resource
from broker.request.context import Context


def deny_unreadable(
    request: ParsedFetch,
    context: Context,
    authorizer: Authorizer,
    replicas: Replicas,
    partitions: Sequence[FetchedPartition],
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
    partitions: Sequence[FetchedPartition],
) -> set[bytes]:
    """Returns the keys of the topics that the client may not read. An unknown topic id gets its own error."""
    keys: dict[bytes, FetchedPartition] = {}
    for fetched in partitions:
        keys.setdefault(fetched.key, fetched)
    if request.replica is not None:
        may_replicate = authorizer.allows(context, Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME)
        return set() if may_replicate else set(keys)
    names = {key: topic_of(replicas, request, fetched) for key, fetched in keys.items()}
    return {
        key
        for key, name in names.items()
        if name is not None and not authorizer.allows(context, Operation.READ, Resource.TOPIC, name)
    }
