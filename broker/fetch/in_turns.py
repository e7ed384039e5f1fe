"""Serves a Fetch of many partitions in turns, so that other connections are served meanwhile.

Reading twenty thousand partitions takes half a second. A follower's incremental fetch isn't served in this way: it is
delayed to batch records (fetch.py), and the leader relies on its regular fetches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.clock import Deadline
from broker.fetch.access import unreadable
from broker.fetch.fetch import Fetch, changes, new_session
from broker.fetch.fetches import Fetches
from broker.fetch.partition import FetchedPartition
from broker.fetch.reading import PartitionReads, read_some
from broker.fetch.request import ParsedFetch, PartitionKey
from broker.fetch.response import add_answers, leader_endpoints
from broker.request.context import Context
from broker.request.request_times import FETCH_FOLLOWER
from broker.request.sleeper import Sleeper
from broker.request.turns import Turns, batches
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchableTopicResponse, FetchResponse

if TYPE_CHECKING:
    from broker.replica.partition import Partition


async def accept_and_serve_in_turns(fetches: Fetches, context: Context, request: ParsedFetch) -> FetchResponse:
    """Returns the answer to a full fetch. A partition that it names twice counts at its first place, with the
    parameters of its last."""
    turns = Turns(fetches.clock)
    partitions: dict[PartitionKey, FetchedPartition] = {}
    for some in batches(request.named):
        await turns.next()
        partitions.update({(fetched.key, fetched.index): fetched for fetched in some})
    if request.replica is not None:
        context.counted_as = FETCH_FOLLOWER
    session = new_session(fetches, request, len(partitions))
    if session is not None:
        session.begin(partitions)
    return await serve_in_turns(Fetch(fetches, context, request, list(partitions.values()), session, True))


async def serve_in_turns(fetch: Fetch) -> FetchResponse:
    """Returns the answer, at once or when appends bring enough. Other requests of the session are rejected
    meanwhile."""
    session = fetch.session
    fetch.context.is_large = True
    if session is not None:
        session.is_at_work = True
    try:
        return await answered(fetch, await read_enough(fetch))
    finally:
        if session is not None:
            session.is_at_work = False


async def read_enough(fetch: Fetch) -> PartitionReads:
    """Returns what was read once it is enough, or at the deadline."""
    request = fetch.request
    turns, deadline = Turns(fetch.fetches.clock), Deadline(fetch.fetches.clock, request.max_wait_ms)
    if fetch.is_many:
        await deny_unreadable(fetch, turns)
    watched: list[Partition] = []
    while True:
        sleeper = Sleeper(request.min_bytes, committed_only=request.committed_only)
        sleeper.watch(watched, appends=request.replica is not None)
        try:
            result = await read_all(fetch, turns)
            if fetch.is_enough(result) or deadline.is_over:
                return result
            before, watched = watched, result.watched
            result.release()
            if before == watched:  # otherwise an append from before the watch has not been read yet
                sleeper.appended(result.size_bytes)
                await sleeper.woken_until(deadline)
        finally:
            sleeper.unwatch()


async def deny_unreadable(fetch: Fetch, turns: Turns) -> None:
    """Denies the topics that the client may not read."""
    authorizer = fetch.fetches.authorizer
    if authorizer is None:
        return
    firsts: dict[bytes, FetchedPartition] = {}
    for fetched in fetch.partitions:
        firsts.setdefault(fetched.key, fetched)
    denied: dict[bytes, ErrorCode] = {}
    for some in batches(list(firsts.values())):
        await turns.next()
        denied |= unreadable(fetch.request, fetch.context, authorizer, fetch.fetches.replicas, some)
    if denied:
        fetch.request.deny(denied)


async def read_all(fetch: Fetch, turns: Turns) -> PartitionReads:
    """Reads every partition once. If data isn't in memory, a thread reads it ahead, and then the partitions are read
    again."""
    result = await read_once(fetch, turns, is_warm=False)
    if result.cold is None:
        return result
    await fetch.fetches.disk_work.read_ahead(result.cold)
    return await read_once(fetch, turns, is_warm=True)


async def read_once(fetch: Fetch, turns: Turns, *, is_warm: bool) -> PartitionReads:
    request, partitions = fetch.request, fetch.partitions
    result = PartitionReads(partitions, request.max_bytes)
    for some in batches(partitions):
        await turns.next()
        read_some(fetch.fetches.replicas, request, list(some), result, is_warm)
    if request.replica is not None:
        request.replica.is_noted = True
    return result


async def answered(fetch: Fetch, result: PartitionReads) -> FetchResponse:
    """Returns the answer as a message."""
    turns, session = Turns(fetch.fetches.clock), fetch.session
    await turns.next()
    answers = fetch.to_report(result)
    session_id = fetch.without_records(result) if answers is None else fetch.session_id
    answers = answers or []
    if session is not None:
        changed: list[FetchedPartition] = []
        for some in batches(answers):
            await turns.next()
            changed += changes(session, list(some), fetch.is_full)
        answers = changed
    topics: list[FetchableTopicResponse] = []
    for some in batches(answers):
        await turns.next()
        add_answers(topics, fetch.request, some)
    await turns.next()
    if session is not None:
        result.release()
    await turns.next()
    endpoints = leader_endpoints(fetch.fetches.image, fetch.context.listener, fetch.request, topics)
    return FetchResponse(session_id=session_id, responses=topics, node_endpoints=endpoints)
