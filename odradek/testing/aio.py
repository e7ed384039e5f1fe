"""A broker with coroutines: a test with an event loop must not stand still while its own clients are at work."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Unpack

from odradek.testing.control import JsonObject
from odradek.testing.controlled import Isolation
from odradek.testing.faults import Fault, FaultFields
from odradek.testing.security import DEFAULT_MECHANISM
from odradek.testing.served import ServedBroker
from odradek.testing.views import Group, Record, RecordedRequest
from odradek.testing.waiting import WAIT_S


class AsyncBroker:
    """The methods of a broker as coroutines, which say the same. They run in threads: the broker's side of the work is
    in a process of its own."""

    def __init__(self, broker: ServedBroker) -> None:
        self.sync = broker
        """The broker, with all that has no coroutine here."""

    @property
    def bootstrap(self) -> str:
        """Returns the address for clients, HOST:PORT."""
        return self.sync.bootstrap

    def client_kwargs(self, user: str | None = None, *, mechanism: str = DEFAULT_MECHANISM) -> dict[str, object]:
        """Returns all that a client of aiokafka needs to reach the broker."""
        return self.sync.client_kwargs(user, mechanism=mechanism)

    def fault(self, **fields: Unpack[FaultFields]) -> Fault:
        """Sets a fault, for `with` and for `async with`."""
        return self.sync.fault(**fields)

    async def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, ms: float = 0
    ) -> None:
        """Lets time pass for the broker."""
        clock = self.sync.clock
        await asyncio.to_thread(clock.advance, days=days, hours=hours, minutes=minutes, seconds=seconds, ms=ms)

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replicas: int | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> str:
        """Creates a topic, and returns its name."""
        return await asyncio.to_thread(
            self.sync.create_topic, name, partitions=partitions, replicas=replicas, configs=configs
        )

    async def delete_topic(self, name: str) -> None:
        """Deletes a topic."""
        await asyncio.to_thread(self.sync.delete_topic, name)

    async def records(
        self,
        topic: str,
        *,
        partition: int | None = None,
        offset: int | None = None,
        isolation: Isolation = "read_uncommitted",
        control_records: bool = False,
    ) -> list[Record]:
        """Returns the records of a topic."""
        return await asyncio.to_thread(
            self.sync.records,
            topic,
            partition=partition,
            offset=offset,
            isolation=isolation,
            control_records=control_records,
        )

    async def apply_retention(self, topic: str | None = None) -> None:
        """Deletes now what retention lets go."""
        await asyncio.to_thread(self.sync.apply_retention, topic)

    async def compact(self, topic: str | None = None) -> None:
        """Compacts now what is to be compacted."""
        await asyncio.to_thread(self.sync.compact, topic)

    async def flush(self) -> None:
        """Flushes all logs to the device."""
        await asyncio.to_thread(self.sync.flush)

    async def group(self, name: str) -> Group | None:
        """Returns a group; None where there is none."""
        return await asyncio.to_thread(self.sync.group, name)

    async def wait_for_group(
        self, name: str, *, members: int | None = None, state: str | None = "Stable", timeout_s: float = WAIT_S
    ) -> Group:
        """Returns a group once it has so many members and this state. Raises WaitTimeout."""
        return await asyncio.to_thread(
            self.sync.wait_for_group, name, members=members, state=state, timeout_s=timeout_s
        )

    async def lag(self, group: str, topic: str | None = None) -> int | None:
        """Returns how many records a group has not committed."""
        return await asyncio.to_thread(self.sync.lag, group, topic)

    async def wait_for_lag(
        self, group: str, lag: int = 0, *, topic: str | None = None, timeout_s: float = WAIT_S
    ) -> None:
        """Returns once the group is behind by so many records at most. Raises WaitTimeout."""
        await asyncio.to_thread(self.sync.wait_for_lag, group, lag, topic=topic, timeout_s=timeout_s)

    async def record_requests(self) -> None:
        """Records requests from now on."""
        await asyncio.to_thread(self.sync.record_requests)

    async def requests(
        self,
        *,
        api: str | None = None,
        client_id: str | None = None,
        topic: str | None = None,
        group: str | None = None,
        bodies: bool = False,
    ) -> list[RecordedRequest]:
        """Returns recorded requests, the oldest first."""
        return await asyncio.to_thread(
            self.sync.requests,
            api=api,
            client_id=client_id,
            topic=topic,
            group=group,
            bodies=bodies,
        )

    async def describe(self) -> JsonObject:
        """Returns ids, listeners, clock, connections and topics of the broker."""
        return await asyncio.to_thread(self.sync.describe)

    async def clear_faults(self) -> None:
        """Takes all faults away."""
        await asyncio.to_thread(self.sync.clear_faults)

    async def kill(self) -> None:
        """Ends it at once."""
        await asyncio.to_thread(self.sync.kill)

    async def restart(self) -> None:
        """Stops it in order, if it runs, and starts it again."""
        await asyncio.to_thread(self.sync.restart)

    async def stop(self) -> None:
        """Asks it to end in order."""
        await asyncio.to_thread(self.sync.stop)

    def pause(self) -> None:
        """Makes it stand still."""
        self.sync.pause()

    def resume(self) -> None:
        """Lets it go on."""
        self.sync.resume()
