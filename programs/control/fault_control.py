"""The control requests that set and remove the faults of a broker. Methods raise RequestError."""

from __future__ import annotations

import asyncio

from broker.dispatch.broker import Broker
from coordinator.cluster.topics.topic import NO_LEADER
from programs.control.broker_faults import BrokerFault, DiskFull, LeaderChange
from programs.control.conditions import Conditions
from programs.control.fault import FaultSet, InjectedFault
from programs.control.fields import Fields
from programs.control.full_disk import FullableDisk
from programs.control.http import ControlAnswer, ControlRequest, RequestError, content_of
from programs.control.reading_faults import ACTIONS, action_named, check_true, conditions_in
from programs.control.request_view import name_of_api
from programs.control.server import ControlConnection


class FaultControl:
    """Sets, shows and removes faults."""

    def __init__(self, broker: Broker, disk: FullableDisk, faults: FaultSet) -> None:
        self._broker = broker
        self._disk = disk
        self._faults = faults
        self._of_broker: dict[str, BrokerFault] = {}
        """The faults of the broker itself, by their ids."""
        self._ending: set[asyncio.Task[None]] = set()

    async def add(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Sets a fault, which is in force when the answer is sent."""
        content = content_of(request)
        fields = Fields(content)
        name = action_named(fields)
        conditions = conditions_in(fields)
        shown = dict(content)
        if conditions.apis:
            shown["api"] = sorted(name_of_api(key) for key in conditions.apis)
        skip, times = fields.number("skip") or 0, fields.number("times", at_least=1)
        owner = connection if fields.flag("while_connected") else None
        action = of_broker = None
        if name in ACTIONS:
            action, conditions = ACTIONS[name](fields, conditions)
        else:
            of_broker = self._fault_of_broker(name, fields, conditions)
            if skip or times is not None:
                raise RequestError(400, f"{name} lasts as long as the fault: it has no skip and no times")
        fields.end()
        fault = InjectedFault(self._faults.new_id(), conditions, action, shown, skip=skip, times=times, owner=owner)
        if of_broker is not None:
            await of_broker.begin(fault)
            self._of_broker[fault.id] = of_broker
        self._faults.add(fault)
        return ControlAnswer(201, fault.content)

    def _fault_of_broker(self, name: str, fields: Fields, conditions: Conditions) -> BrokerFault:
        """Returns a fault of the broker itself that is not started yet."""
        if name == "disk_full":
            check_true(fields, name)
            if conditions != Conditions():
                raise RequestError(400, "disk_full applies to all records, and has no conditions")
            return DiskFull(self._disk)
        leader = NO_LEADER
        if name == "no_leader":
            check_true(fields, name)
        else:
            leader = fields.number(name) or 0
        topic, partition = conditions.topic, conditions.partition
        if topic is None or partition is None or conditions != Conditions(topic=topic, partition=partition):
            example = '"topic": "orders", "partition": 0'
            raise RequestError(400, f"{name} needs topic and partition, as {example}, and no other conditions")
        return LeaderChange(self._broker, topic, partition, leader)

    async def list_all(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Shows all faults."""
        return ControlAnswer(200, {"faults": [fault.content for fault in self._faults.faults.values()]})

    async def describe(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Shows one fault."""
        return ControlAnswer(200, self._named(request).content)

    async def remove(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Removes one fault."""
        fault = self._named(request)
        await self._remove(fault)
        return ControlAnswer(200, fault.content)

    async def remove_all(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Removes all faults."""
        faults = list(self._faults.faults.values())
        for fault in faults:
            await self._remove(fault)
        return ControlAnswer(200, {"faults": [fault.content for fault in faults]})

    def _named(self, request: ControlRequest) -> InjectedFault:
        fault = self._faults.faults.get(request.path[-1])
        if fault is None:
            raise RequestError(404, f"there is no fault {request.path[-1]}")
        return fault

    async def _remove(self, fault: InjectedFault) -> None:
        self._faults.remove(fault)
        of_broker = self._of_broker.pop(fault.id, None)
        if of_broker is not None:
            await of_broker.end()

    def owner_gone(self, connection: ControlConnection) -> None:
        """Removes the faults of a connection that has ended."""
        for fault in self._faults.of_owner(connection):
            task = asyncio.ensure_future(self._remove(fault))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
