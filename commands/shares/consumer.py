"""`odradek share consume`: reads the assigned partitions, and acknowledges printed records."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Final, TypeVar

from client.errors import PeerError, RequestTimedOut
from commands.client.cluster_client import PAUSE, draw
from commands.client.heartbeats import heartbeats
from commands.client.patience import EmptyHanded
from commands.errors import BrokerUnreachable, explain, raise_if
from commands.records.output import PrintedRecord
from commands.session import Session
from commands.shares.membership import ShareMembership
from commands.shares.session import (
    MAX_WAIT_MS,
    RELEASE,
    Acknowledgements,
    MemberShareSession,
    RangeAcknowledgement,
    SharePlace,
    acquired_ranges,
)
from protocol.errors import RETRIABLE, ErrorCode, error_code
from protocol.messages.share_acknowledge import ShareAcknowledgeResponse
from protocol.messages.share_fetch import PartitionData, ShareFetchResponse
from protocol.types import TopicPartition

R = TypeVar("R", ShareFetchResponse, ShareAcknowledgeResponse)

LOST_SESSION: Final = frozenset({ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH})
PASSING: Final = RETRIABLE | {ErrorCode.SHARE_SESSION_LIMIT_REACHED}
"""Errors after which the request is sent again, after a pause."""


class ShareConsumer:
    """A member of a share group that prints acquired records."""

    def __init__(
        self, session: Session, write: Callable[[PrintedRecord], None], kind: int, timeout_ms: int | None
    ) -> None:
        """`kind` is the acknowledgement type of printed records. The consumer stops after `timeout_ms` without a
        record."""
        options = session.options
        self._session = session
        self._cluster = session.cluster
        self._write = write
        self._kind = kind
        self._timeout_ms = timeout_ms
        self._left: int | None = options.count
        self._group: str = options.group
        self._topics: list[str] = options.topics
        self._member = ShareMembership(session.cluster, options.group, options.topics)
        self._sessions: dict[int, MemberShareSession] = {}
        self._under_way: dict[int, asyncio.Task[ShareFetchResponse | None]] = {}
        self._names: dict[SharePlace, TopicPartition] = {}
        self._leaders: dict[SharePlace, int] = {}
        self._failures = 0
        self._active_ms = self._cluster.clock.monotonic_ms()
        """The time of the last record or, before any, of the first assignment."""
        self._has_begun = False
        self._empty_handed = EmptyHanded(
            session.cluster.clock, session.output.note, options.group, "odradek share describe"
        )

    async def run(self) -> None:
        """Reads until --count or --timeout is reached. Always releases its acquired records and leaves the group."""
        async with heartbeats(self._member, self._close) as raise_lost:
            while not self._is_finished():
                await self._poll()
                raise_lost()

    def _is_finished(self) -> bool:
        if self._left == 0:
            return True
        if not self._has_begun and self._member.places:
            self._has_begun, self._active_ms = True, self._cluster.clock.monotonic_ms()
        if self._timeout_ms is None:
            return False
        joining_ms = 0 if self._has_begun else self._cluster.timeout_ms
        return self._cluster.clock.monotonic_ms() - self._active_ms >= self._timeout_ms + joining_ms

    async def _poll(self) -> None:
        """Sends a fetch to each leader without one in flight, and processes the first answers."""
        self._empty_handed.look(len(self._member.places))
        await self._find_leaders()
        by_leader: dict[int, set[SharePlace]] = {}
        for place in self._member.places:
            if self._leaders.get(place, -1) >= 0:
                by_leader.setdefault(self._leaders[place], set()).add(place)
        for leader in by_leader.keys() - self._under_way.keys():
            self._under_way[leader] = asyncio.ensure_future(self._fetch(leader, by_leader[leader]))
        if not self._under_way:
            await self._cluster.pause(MAX_WAIT_MS // 5)
            return
        done, _ = await asyncio.wait(self._under_way.values(), return_when=asyncio.FIRST_COMPLETED)
        for leader, task in [item for item in self._under_way.items() if item[1] in done]:
            del self._under_way[leader]
            answer = task.result()
            if answer is not None:
                await self._take(leader, answer)

    async def _find_leaders(self) -> None:
        """Looks up the leaders of partitions whose leader is unknown."""
        if all(self._leaders.get(place, -1) >= 0 for place in self._member.places):
            return
        if self._failures:
            await self._cluster.pause(PAUSE.delay_ms(self._failures, draw()))
        self._failures += 1
        for topic in await self._cluster.topics(self._topics):
            for partition in topic.partitions:
                place = SharePlace(topic.topic_id, partition.partition_index)
                self._names[place] = TopicPartition(topic.name or "", partition.partition_index)
                self._leaders[place] = partition.leader_id

    async def _fetch(self, leader: int, places: set[SharePlace]) -> ShareFetchResponse | None:
        if (session := self._sessions.get(leader)) is None:
            session = self._sessions[leader] = MemberShareSession(self._group, self._member.member_id)
        request = session.fetch(places, self._left)
        answer = await self._ask(leader, session, request, ShareFetchResponse)
        if answer is None:
            for place in places:
                self._leaders.pop(place, None)
        return answer

    async def _ask(self, leader: int, session: MemberShareSession, request: object, response: type[R]) -> R | None:
        """Returns the answer to a request of a session; None if the session was reset."""
        try:
            answer = await self._cluster.node(leader, request, response)
        except (BrokerUnreachable, RequestTimedOut):
            session.begin_anew()
            self._failures = max(self._failures, 1)
            return None
        code = error_code(answer.error_code)
        if code in LOST_SESSION or code in PASSING:
            session.begin_anew()
            self._failures = max(self._failures, 1)
            return None
        raise_if(f"broker {leader}", answer.error_code, answer.error_message)
        session.answered()
        return answer

    async def _take(self, leader: int, answer: ShareFetchResponse) -> None:
        """Prints the acquired records, flushes the output, then acknowledges them."""
        acknowledgements: dict[SharePlace, list[RangeAcknowledgement]] = {}
        for topic in answer.responses:
            for partition in topic.partitions:
                place = SharePlace(topic.topic_id, partition.partition_index)
                if self._is_sound(place, partition):
                    ranges = [
                        RangeAcknowledgement(
                            acquired.first, acquired.acknowledgements(self._kind, self._print(place, acquired.printed))
                        )
                        for acquired in acquired_ranges(partition)
                    ]
                    if ranges:
                        acknowledgements[place] = ranges
        sys.stdout.flush()
        if acknowledgements and self._kind != RELEASE:  # the end of the session releases printed records too
            await self._acknowledge(leader, acknowledgements)

    def _print(self, place: SharePlace, records_of: Callable[[TopicPartition], list[PrintedRecord]]) -> set[int]:
        """Prints records until --count is reached. Returns their offsets."""
        records = records_of(self._names[place])[: self._left]
        for printed in records:
            self._write(printed)
        if records:
            self._active_ms = self._cluster.clock.monotonic_ms()
            self._failures = 0
            self._left = None if self._left is None else self._left - len(records)
        return {printed.record.offset for printed in records}

    def _is_sound(self, place: SharePlace, partition: PartitionData) -> bool:
        """True if the answer may have records. Raises CommandError for an error that is not retriable."""
        if not partition.error_code:
            return place in self._names
        if error_code(partition.error_code) in RETRIABLE:
            self._leaders.pop(place, None)
            self._failures = max(self._failures, 1)
            return False
        raise_if(str(self._names.get(place, place)), partition.error_code, partition.error_message)
        return False

    async def _acknowledge(self, leader: int, acknowledgements: Acknowledgements) -> None:
        session = self._sessions[leader]
        answer = await self._ask(leader, session, session.acknowledge(acknowledgements), ShareAcknowledgeResponse)
        if answer is None:
            names = ", ".join(sorted(str(self._names[place]) for place in acknowledgements))
            self._session.output.note(f"odradek: {names}: printed records may be unacknowledged, and delivered again")
            return
        for topic in answer.responses:
            for partition in topic.partitions:
                if partition.error_code:
                    name = self._names[SharePlace(topic.topic_id, partition.partition_index)]
                    error = explain(partition.error_code, partition.error_message)
                    self._session.output.note(f"odradek: {name}: printed records were not acknowledged: {error}")

    async def _close(self) -> None:
        """Closes the sessions, which releases acquired records that were not acknowledged."""
        for task in self._under_way.values():
            task.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)
        self._under_way.clear()
        for leader, session in self._sessions.items():
            if session.is_open:
                try:
                    await self._cluster.node(leader, session.acknowledge({}, is_last=True), ShareAcknowledgeResponse)
                except (BrokerUnreachable, PeerError) as error:
                    self._session.output.note(f"odradek: broker {leader}: records in its session stay locked: {error}")
