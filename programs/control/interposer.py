"""The interposer answers requests in front of a broker's dispatcher, and so in front of short cuts and handlers.

Without faults and without a recording it passes frames on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from broker.dispatch.broker import Broker
from broker.request.context import AnswerBuffers, ClientConnection
from broker.request.pending import Answer, Running
from programs.control.actions import Exchange
from programs.control.fault import FaultSet, InjectedFault
from programs.control.frames import Awaited
from programs.control.recorder import Recorder, RequestEntry
from programs.control.request_view import RequestView
from programs.control.travelling import TravellingLoop
from protocol.codec import MALFORMED
from protocol.errors import ProtocolError

UNREADABLE: Final = (ProtocolError, *MALFORMED)


class Interposer:
    """Applies faults to frames, passes all others to the dispatcher, and records requests."""

    def __init__(self, broker: Broker, ask: Callable[[ClientConnection, memoryview], Answer]) -> None:
        """`ask` is the dispatcher's answer."""
        self.host = broker
        self.faults = FaultSet()
        self.recorder = Recorder(broker.clock)
        self._ask = ask
        loop = asyncio.get_running_loop()
        self._loop = loop if isinstance(loop, TravellingLoop) else None

    def answer(self, connection: ClientConnection, frame: memoryview) -> Answer:
        """Returns the answer to one request frame. Raises ProtocolError, which closes the connection."""
        if self._loop is not None and self._loop.is_travelling:
            return Running(self._after_journey(self._loop, connection, memoryview(bytearray(frame))))
        if not self.faults.faults and not self.recorder.is_recording:
            return self._ask(connection, frame)
        try:
            view = RequestView(self.host, connection, frame)
        except UNREADABLE:
            return self._ask(connection, frame)  # the dispatcher rejects it
        fault = self.faults.take(view)
        entry = self.recorder.begin(view, fault)
        if entry is None:
            return self._answer(view, fault)
        try:
            answer = self._answer(view, fault)
        except ProtocolError:
            entry.closed()
            raise
        return self._recorded(view, entry, answer)

    async def _after_journey(self, loop: TravellingLoop, connection: ClientConnection, frame: memoryview) -> Answer:
        """Answers a request that arrived during a journey, after its end: for the client the journey takes no time."""
        await loop.arrived()
        return await Awaited(connection, self.answer(connection, frame)).buffers()

    def _answer(self, view: RequestView, fault: InjectedFault | None) -> Answer:
        if fault is None or fault.action is None:
            return self._ask(view.connection, view.frame)
        return fault.action.answer(Exchange(self.host, view, self._ask, fault))

    def _recorded(self, view: RequestView, entry: RequestEntry, answer: Answer) -> Answer:
        if answer is None or isinstance(answer, list):
            entry.answered(answer)
            return answer
        return Running(self._recorded_later(entry, Awaited(view.connection, answer)))

    async def _recorded_later(self, entry: RequestEntry, awaited: Awaited) -> AnswerBuffers:
        try:
            buffers = await awaited.buffers()
        except BaseException:
            entry.closed()
            raise
        entry.answered(buffers)
        return buffers
