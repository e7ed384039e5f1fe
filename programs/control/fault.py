"""A fault: its action, its conditions, and the number of times it fired."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from programs.control.actions import Action
from programs.control.conditions import Conditions
from programs.control.request_view import RequestView


class InjectedFault:
    """One fault, from its setting to its removal."""

    def __init__(
        self,
        fault_id: str,
        conditions: Conditions,
        action: Action | None,
        fields: Mapping[str, object],
        *,
        skip: int = 0,
        times: int | None = None,
        owner: object = None,
    ) -> None:
        """`action` is None for a fault of the broker itself. `fields` are the fault's JSON. The fault is removed when
        its owner disconnects, if it has one."""
        self.id = fault_id
        self.conditions = conditions
        self.action = action
        self.owner = owner
        self.fired = 0
        self.gone = asyncio.Event()
        """An event that is set once the fault is removed."""
        self._fields = fields
        self._skip = skip
        self._times = times

    @property
    def is_over(self) -> bool:
        """True once it has fired `times` times."""
        return self._times is not None and self.fired >= self._times

    def takes(self, view: RequestView) -> bool:
        """True if the fault acts on the request, which is then counted."""
        if self.action is None or self.is_over or not self.conditions.hold(view) or not self.action.concerns(view):
            return False
        if self._skip > 0:
            self._skip -= 1
            return False
        self.fired += 1
        return True

    @property
    def content(self) -> dict[str, object]:
        """The fault's description for JSON."""
        left = {} if self._times is None else {"left": self._times - self.fired}
        return {"id": self.id, "fired": self.fired, **left, **self._fields}


class FaultSet:
    """The faults of a broker, in the order of their setting."""

    def __init__(self) -> None:
        self.faults: dict[str, InjectedFault] = {}
        self._count = 0

    def new_id(self) -> str:
        """Returns an id that no fault has had."""
        self._count += 1
        return str(self._count)

    def add(self, fault: InjectedFault) -> None:
        self.faults[fault.id] = fault

    def take(self, view: RequestView) -> InjectedFault | None:
        """Returns the fault that acts on a request; None if no fault does."""
        return next((fault for fault in self.faults.values() if fault.takes(view)), None)

    def remove(self, fault: InjectedFault) -> None:
        """Removes a fault; requests that it blocks continue."""
        self.faults.pop(fault.id, None)
        fault.gone.set()

    def of_owner(self, owner: object) -> list[InjectedFault]:
        """Returns the faults of an owner."""
        return [fault for fault in self.faults.values() if fault.owner is owner]
