"""Connections to the controllers, and requests to the active controller.

The observer of the metadata log finds the controller that leads. A request that certainly wasn't carried out, or that
can safely be repeated, is sent again to the current leader until its timeout.

Source: Kafka's NodeToControllerChannelManager.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from broker.clock import Clock, pause
from client.address import Address
from client.errors import HandshakeFailed, PeerError, UnsupportedVersion
from client.pool import Peer
from client.settings import Settings
from coordinator.quorum.leadership import Leadership, Location
from protocol.backoff import Backoff
from protocol.errors import ErrorCode, KafkaError, ProtocolError, error_code
from protocol.versions import ANY_VERSION

R = TypeVar("R")

LEADER_POLL_MS: Final = 20
"""Interval between checks for a leader while none is known."""

BACKOFF: Final = Backoff(initial_ms=50, max_ms=1_000)
"""The pause between two attempts of the same request."""


def never() -> bool:
    """Returns False: no controller is in this process."""
    return False


class Controllers:
    """The controllers as peers, by host and port."""

    def __init__(
        self,
        leadership: Leadership,
        settings: Settings,
        clock: Clock,
        draw: Callable[[], float],
        leads_here: Callable[[], bool] = never,
    ) -> None:
        """`draw` returns random numbers from 0 up to 1; `leads_here` returns True while the controller in this process
        leads."""
        self.leadership = leadership
        self.clock = clock
        self._leads_here = leads_here
        self._settings = settings
        self._draw = draw
        self._peers: dict[Location, Peer] = {}
        self._is_closed = False

    def peer(self, location: Location) -> Peer:
        """Returns the controller at this address."""
        peer = self._peers.get(location)
        if peer is None:
            peer = self._peers[location] = Peer(Address(*location), self._settings, self.clock, self._draw)
        return peer

    async def send(
        self,
        request: object,
        response: type[R],
        timeout_ms: int,
        code_of: Callable[[R], int],
        *,
        max_version: int = ANY_VERSION,
    ) -> R:
        """Returns the leading controller's response to the request, in the highest version that both sides support, up
        to `max_version`; `code_of` returns the response's top-level error code.

        Raises KafkaError: REQUEST_TIMED_OUT without a response in time, UNSUPPORTED_VERSION if the controllers don't
        know the request, NOT_CONTROLLER once the controller in this process leads, which needs no connection.
        """
        deadline_ms = self.clock.monotonic_ms() + timeout_ms
        failures, problem = 0, ""
        while (left_ms := deadline_ms - self.clock.monotonic_ms()) > 0 and not self._is_closed:
            if self._leads_here():
                raise KafkaError(ErrorCode.NOT_CONTROLLER, "the controller in this process leads")
            location = self.leadership.leader
            if location is None:
                await pause(self.clock, min(LEADER_POLL_MS, left_ms))
                continue
            try:
                answer = await self.peer(location).send(
                    request, response, timeout_ms=left_ms, max_version=max_version, max_dials=1
                )
            except (UnsupportedVersion, HandshakeFailed) as error:
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from error
            except (PeerError, ProtocolError) as error:
                problem = str(error)
            else:
                code = error_code(code_of(answer))
                if code is not ErrorCode.NOT_CONTROLLER:
                    return answer
                problem = f"{location}: {code.message}"
            failures += 1
            delay_ms = BACKOFF.delay_ms(failures, self._draw())
            await pause(self.clock, min(delay_ms, deadline_ms - self.clock.monotonic_ms()))
        reason = problem or self.leadership.problem
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"no answer of a controller within {timeout_ms} ms: {reason}")

    async def close(self) -> None:
        """Closes all connections for good; waiting requests fail."""
        self._is_closed = True
        await asyncio.gather(*(peer.close() for peer in self._peers.values()))
