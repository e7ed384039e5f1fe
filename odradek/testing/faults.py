"""Faults on demand (docs/control.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Literal, TypedDict

from odradek.testing.control import Connection, Control, JsonObject
from odradek.testing.errors import BrokerError

__tracebackhide__ = True


class FaultFields(TypedDict, total=False):
    """The fields of a fault: conditions, repetitions and one action (docs/control.md)."""

    api: str | int | Sequence[str | int]
    topic: str
    partition: int
    group: str
    transactional_id: str
    client_id: str
    listener: str

    skip: int
    times: int
    when: Literal["before", "after"]

    error: str | int
    delay_ms: int
    disconnect: bool
    drop: bool
    half_answer: bool
    throttle_ms: int
    shuffle: int
    max_version: int
    release: str
    coordinator: Literal["loading", "moved", "unavailable"]
    disk_full: bool
    no_leader: bool
    move_leader: int


class Fault:
    """A fault of a broker, or of all brokers of a cluster. It is in force until `remove`, the end of a `with` block, or
    the end of the process that set it."""

    def __init__(self, controls: Sequence[Control], fields: FaultFields) -> None:
        """Sets the fault. Raises ControlError for invalid fields."""
        self._set: list[_FaultOfBroker] = []
        self.is_removed = False
        try:
            for control in controls:
                self._set.append(_FaultOfBroker(control.connect(), fields))
        except BrokerError:
            self.remove()
            raise

    @property
    def fired(self) -> int:
        """Returns the number of times that it fired. If a broker was killed or restarted meanwhile, its last known
        number counts."""
        if not self.is_removed:
            for fault in self._set:
                fault.read("GET")
        return sum(fault.fired for fault in self._set)

    def remove(self) -> None:
        """Removes the fault."""
        if not self.is_removed:
            self.is_removed = True
            for fault in self._set:
                fault.read("DELETE")
                fault.connection.close()

    def __enter__(self) -> Fault:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    async def __aenter__(self) -> Fault:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.remove)


class _FaultOfBroker:
    """A fault that is set on a connection and ends with it."""

    def __init__(self, connection: Connection, fields: FaultFields) -> None:
        self.connection = connection
        self.fired = 0
        body: JsonObject = {**fields, "while_connected": True}
        if not isinstance(api := fields.get("api", ""), str | int):
            body["api"] = list(api)
        try:
            self._path = f"/v1/faults/{connection.ask('POST', '/v1/faults', body)['id']}"
        except BrokerError:
            connection.close()
            raise

    def read(self, method: str) -> None:
        with suppress(BrokerError):
            self.fired = int(self.connection.ask(method, self._path)["fired"])
