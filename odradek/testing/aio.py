"""Brokers with coroutines, so that calls don't block a test's event loop while its clients work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack

from odradek.testing.clock import BrokerClock
from odradek.testing.controlled import ControlledBroker
from odradek.testing.faults import Fault, FaultFields
from odradek.testing.security import DEFAULT_MECHANISM
from odradek.testing.served import ServedBroker

__tracebackhide__ = True

B = TypeVar("B", bound=ControlledBroker)
P = ParamSpec("P")
R = TypeVar("R")


def threaded(
    method: Callable[Concatenate[Any, P], R], part: str = ""
) -> Callable[Concatenate[AsyncControlled[Any], P], Coroutine[Any, Any, R]]:
    """Returns a coroutine function with the same parameters and documentation. It calls, in a thread, the method of
    this name of the broker or of a part of the broker."""

    @wraps(method)
    async def call(view: AsyncControlled[Any], /, *args: P.args, **kwargs: P.kwargs) -> R:
        whole = view.sync
        bound: Callable[P, R] = getattr(getattr(whole, part) if part else whole, method.__name__)
        return await asyncio.to_thread(bound, *args, **kwargs)

    return call


class AsyncControlled(Generic[B]):
    """The methods of `ControlledBroker` as coroutines. `sync` has all other methods."""

    def __init__(self, broker: B) -> None:
        self.sync = broker
        """The broker with its blocking methods."""

    @property
    def bootstrap(self) -> str:
        """Returns the address for clients, HOST:PORT."""
        return self.sync.bootstrap

    def fault(self, **fields: Unpack[FaultFields]) -> Fault:
        """Sets a fault, for `with` and for `async with`."""
        return self.sync.fault(**fields)

    advance = threaded(BrokerClock.advance, "clock")
    create_topic = threaded(ControlledBroker.create_topic)
    delete_topic = threaded(ControlledBroker.delete_topic)
    records = threaded(ControlledBroker.records)
    apply_retention = threaded(ControlledBroker.apply_retention)
    compact = threaded(ControlledBroker.compact)
    flush = threaded(ControlledBroker.flush)
    groups = threaded(ControlledBroker.groups)
    group = threaded(ControlledBroker.group)
    wait_for_group = threaded(ControlledBroker.wait_for_group)
    lag = threaded(ControlledBroker.lag)
    wait_for_lag = threaded(ControlledBroker.wait_for_lag)
    record_requests = threaded(ControlledBroker.record_requests)
    requests = threaded(ControlledBroker.requests)
    describe = threaded(ControlledBroker.describe)
    partitions = threaded(ControlledBroker.partitions)
    leader = threaded(ControlledBroker.leader)
    clear_faults = threaded(ControlledBroker.clear_faults)


class AsyncBroker(AsyncControlled[ServedBroker]):
    """The methods of a broker as coroutines."""

    def client_kwargs(self, user: str | None = None, *, mechanism: str = DEFAULT_MECHANISM) -> dict[str, object]:
        """Returns the arguments of an aiokafka client that connects to the broker."""
        return self.sync.client_kwargs(user, mechanism=mechanism)

    kill = threaded(ServedBroker.kill)
    restart = threaded(ServedBroker.restart)
    stop = threaded(ServedBroker.stop)
    recover = threaded(ServedBroker.recover)

    def pause(self) -> None:
        """Pauses the broker."""
        self.sync.pause()

    def resume(self) -> None:
        """Resumes the broker."""
        self.sync.resume()
