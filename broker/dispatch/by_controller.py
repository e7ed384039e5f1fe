"""Requests that the controller answers, in this process or another."""

from __future__ import annotations

from broker.dispatch.call import HostCall, Request
from coordinator.cluster.controller import Asker


def asker_of(call: HostCall[Request]) -> Asker:
    """Returns the client of a request as the controller sees it."""
    return Asker(call.context.requester, call.version, call.host.broker_id)


async def by_controller(call: HostCall[Request]) -> object:
    """Returns the controller's answer to a request as it is, once this broker has applied the changes."""
    response: object = await call.host.controller.submit(call.request, call.api.response, asker_of(call))
    await call.host.new_logs.changes.over()
    return response
