"""Matches the patterns of groups against all topics in a thread, and passes the result to the group's shard."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from broker.clock import Clock
from broker.logging import get_logger
from broker.request.turns import Turns
from broker.workers import Workers
from coordinator.cluster.image import Image
from coordinator.engine.result import Ticket
from coordinator.group.consumer.patterns import Matched, patterns_matched
from coordinator.group.records import GroupResult
from coordinator.group.regex import Resolved, match_all
from coordinator.group.state import Client, GroupState, MatchRequest
from protocol.errors import KafkaError

Decide: TypeAlias = Callable[[GroupState, Matched, Client, Ticket[None], int], GroupResult]
Submit: TypeAlias = Callable[[str, Decide, Matched, Client], Awaitable[None]]
"""Decides in the group's shard. Raises KafkaError."""

THREADS = 1
"""One group after another, so that a burst of joins doesn't block the event loop."""

logger = get_logger(__name__)


class PatternMatcher:
    """Matches the patterns of all shards' groups."""

    def __init__(self, clock: Clock, image: Image, submit: Submit) -> None:
        self._clock = clock
        self._image = image
        self._submit = submit
        self._workers = Workers(THREADS, "patterns")

    def close(self) -> None:
        """Waits for the match in progress."""
        self._workers.close()

    async def match(self, request: MatchRequest) -> None:
        """Matches the patterns against the current topics, and passes the result to the group's shard: only topics that
        the requesting member may describe (Kafka's GroupMetadataManager)."""
        image, clock = self._image, self._clock
        names, version, started_ms = image.topic_names(), image.offset, clock.now_ms()
        matched = await self._workers.call(lambda: match_all(request.patterns, names))
        if request.client.may_describe is not None:
            matched = await self._describable(matched, request.client.may_describe)
        resolved = {pattern: Resolved(topics, version, started_ms) for pattern, topics in matched.items()}
        result = Matched(request.group_id, resolved)
        try:
            await self._submit(request.group_id, patterns_matched, result, request.client)
        except KafkaError as error:  # a later heartbeat asks again
            logger.warning("patterns not resolved", group=request.group_id, reason=str(error))
            return
        took_ms = clock.now_ms() - started_ms
        logger.info("patterns resolved", group=request.group_id, patterns=list(matched), topics=len(names), ms=took_ms)

    async def _describable(
        self, matched: Mapping[str, frozenset[str]], may_describe: Callable[[str], bool]
    ) -> Mapping[str, frozenset[str]]:
        """Returns the matched topics that the member may describe. There may be as many as the cluster has."""
        names: frozenset[str] = frozenset().union(*matched.values())
        ordered = sorted(names)
        answers = await Turns(self._clock).map(may_describe, ordered)
        describable = frozenset(name for name, may_be_known in zip(ordered, answers, strict=True) if may_be_known)
        return {pattern: topics & describable for pattern, topics in matched.items()}
