"""`odradek consume --group`: a member of a group, by the classic protocol.

Every broker since 0.9 speaks it, and groups of the consumer protocol accept classic members too (KIP-848).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from commands.client.heartbeats import heartbeats
from commands.client.patience import EmptyHanded
from commands.groups.membership import Membership
from commands.groups.offsets import commit_offsets, committed_offsets
from commands.records.fetching import PartitionReader
from commands.records.output import PrintedRecord
from commands.records.positions import READ_COMMITTED, READ_UNCOMMITTED, START, bounds, resolve
from commands.session import Session
from protocol.types import TopicPartition

COMMIT_INTERVAL_MS: Final = 5000
"""auto.commit.interval.ms of Kafka's consumers."""


class GroupConsumer:
    """Reads the assigned partitions, prints the records, and commits the offsets of printed records."""

    def __init__(self, session: Session, write: Callable[[PrintedRecord], None]) -> None:
        options = session.options
        self._session = session
        self._write = write
        self._isolation = READ_COMMITTED if options.isolation == "read_committed" else READ_UNCOMMITTED
        self._member = Membership(session.cluster, options.group, options.topics)
        self._reader = PartitionReader(session.cluster, isolation=self._isolation)
        self._printed: dict[TopicPartition, int] = {}
        """The next offset after the printed records that are not committed yet."""
        self._ends: dict[TopicPartition, int] = {}
        self._left: int | None = options.count
        self._committed_ms = session.cluster.clock.monotonic_ms()
        self._empty_handed = EmptyHanded(
            session.cluster.clock, session.output.note, options.group, "odradek group members"
        )

    async def run(self) -> None:
        """Reads until --count or --exit-at-end is reached. Always leaves the group."""
        async with heartbeats(self._member, self._close) as raise_lost:
            while not self._is_finished():
                if self._member.must_rejoin:
                    await self._rejoin()
                await self._poll()
                raise_lost()

    def _is_finished(self) -> bool:
        if self._left == 0:
            return True
        at_end = all(self._reader.positions.get(place, -1) >= end for place, end in self._ends.items())
        return bool(self._session.options.exit_at_end and not self._member.must_rejoin and at_end)

    async def _close(self) -> None:
        await self._reader.close()
        await self._commit()

    async def _rejoin(self) -> None:
        """Joins a new generation, and starts from the committed offsets."""
        await self._close()
        places = await self._member.join()
        self._reader.positions.clear()
        self._printed.clear()
        committed = await committed_offsets(self._session.cluster, self._session.options.group, places)
        fresh = [place for place in places if committed.get(place, -1) < 0]
        starts = await resolve(self._session.cluster, dict.fromkeys(fresh, START))
        self._reader.positions |= {place: committed[place] for place in places}
        self._reader.positions |= {**dict.fromkeys(starts.errors, 0), **starts.offsets}  # 0 is or becomes the start
        if self._session.options.exit_at_end:
            limits = await bounds(self._session.cluster, places, self._isolation)
            self._ends = limits.ends
            for place, error in limits.errors.items():
                self._reader.positions.pop(place, None)
                self._session.output.failed(f"{place}: {error}")

    async def _poll(self) -> None:
        self._empty_handed.look(len(self._reader.positions))
        async for place, records, next_offset in self._reader.poll():
            for record, kind in records:
                if self._left == 0:
                    break
                self._write(PrintedRecord(place, record, kind))
                self._printed[place] = record.offset + 1
                self._left = None if self._left is None else self._left - 1
            else:
                self._printed[place] = next_offset
        sys.stdout.flush()
        now_ms = self._session.cluster.clock.monotonic_ms()
        if now_ms - self._committed_ms >= COMMIT_INTERVAL_MS:
            await self._commit()

    async def _commit(self) -> None:
        self._committed_ms = self._session.cluster.clock.monotonic_ms()
        offsets, self._printed = self._printed, {}
        if offsets and self._member.is_member:
            group, identity = self._session.options.group, self._member.identity
            errors = await commit_offsets(self._session.cluster, group, offsets, identity)
            for place, error in errors.items():
                self._session.output.note(f"odradek: {place}: the offset was not committed: {error}")


async def consume_as_member(session: Session, write: Callable[[PrintedRecord], None]) -> None:
    """Reads topics as a member of the group that the options name."""
    await GroupConsumer(session, write).run()
