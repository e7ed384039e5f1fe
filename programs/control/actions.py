"""The actions of faults on requests: each answers a request in the broker's place, or changes what the broker answers.

An action gets the broker's own answer through `ask`, by frames. So it works for every API, and for short cuts and
handlers alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol
from zlib import crc32

from broker.clock import pause
from broker.exchange.context import AnswerBuffers, ClientConnection
from broker.exchange.pending import Answer, Running
from broker.requests.broker import Broker
from broker.requests.rejection import rejection
from programs.control.conditions import Cause
from programs.control.frames import Awaited, buffers_of, finished, request_frame_of, response_in
from programs.control.overriding import OVERRIDDEN, without_wait
from programs.control.refusing import BY_PARTITION, in_other_order, is_empty, joined, split
from programs.control.request_view import RequestView, SubjectPartition, topic_name
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode, KafkaError, ProtocolError

PRODUCE_WITHOUT_ANSWER: Final = 0
SHUFFLED: Final = frozenset({ApiKey.FETCH, ApiKey.SHARE_FETCH})
TOPICS_FIELD: Final = "responses"
THROTTLE_FIELD: Final = "throttle_time_ms"

Ask = Callable[[ClientConnection, memoryview], Answer]
"""(connection, frame) → the broker's own answer."""


class Exchange:
    """One request that a fault acts on, and the ways to answer it."""

    def __init__(self, broker: Broker, view: RequestView, ask: Ask, fault: Cause) -> None:
        self.broker = broker
        self.view = view
        self.fault = fault
        self.ask = ask

    def pass_on(self, frame: memoryview | None = None) -> Answer:
        """Returns the broker's own answer to `frame`, or else to the client's frame."""
        return self.ask(self.view.connection, self.view.frame if frame is None else frame)

    def awaited(self, frame: memoryview | None = None) -> Awaited:
        """Returns the broker's own answer, for a coroutine to await."""
        return Awaited(self.view.connection, self.pass_on(frame))

    def closing(self) -> ProtocolError:
        """Returns the error that closes the connection and is logged."""
        return ProtocolError(f"closed by fault {self.fault.id}, on {self.view.name}", offset=0)


class Action(Protocol):
    """The part of a fault that answers a request."""

    def concerns(self, view: RequestView) -> bool:
        """True if the action can apply to the request, regardless of the conditions."""
        ...

    def answer(self, exchange: Exchange) -> Answer:
        """Returns the answer. Raises ProtocolError, which closes the connection."""
        ...


class EveryRequest:
    """An action on every request that meets the conditions."""

    def concerns(self, view: RequestView) -> bool:
        return True


class Delay(EveryRequest):
    """Delays the answer; with `is_after` the request is still carried out at once."""

    def __init__(self, delay_ms: int, is_after: bool) -> None:
        self._delay_ms = delay_ms
        self._is_after = is_after

    def answer(self, exchange: Exchange) -> Answer:
        return Running(self._later(exchange, exchange.awaited() if self._is_after else None))

    async def _later(self, exchange: Exchange, begun: Awaited | None) -> Answer:
        await pause(exchange.broker.clock, self._delay_ms)
        return await (begun or exchange.awaited()).buffers()


class Disconnect(EveryRequest):
    """Closes the connection instead of an answer."""

    def __init__(self, is_after: bool) -> None:
        self._is_after = is_after

    def answer(self, exchange: Exchange) -> Answer:
        if self._is_after:
            return Running(self._later(exchange, exchange.awaited()))
        raise exchange.closing()

    async def _later(self, exchange: Exchange, begun: Awaited) -> Answer:
        await begun.buffers()
        raise exchange.closing()


class Drop(EveryRequest):
    """Sends no answer until the fault is removed, and then closes the connection, so that the client continues."""

    def __init__(self, is_after: bool) -> None:
        self._is_after = is_after

    def answer(self, exchange: Exchange) -> Answer:
        return Running(self._never(exchange, exchange.awaited() if self._is_after else None))

    async def _never(self, exchange: Exchange, begun: Awaited | None) -> Answer:
        if begun is not None:
            await begun.buffers()
        await exchange.fault.gone.wait()
        raise exchange.closing()


class HalfAnswer(EveryRequest):
    """Sends half of the answer's bytes, then closes the connection."""

    def answer(self, exchange: Exchange) -> Answer:
        return Running(self._half(exchange, exchange.awaited()))

    async def _half(self, exchange: Exchange, begun: Awaited) -> Answer:
        whole = b"".join(await begun.buffers() or ())
        if not whole:
            raise exchange.closing()
        exchange.view.connection.refused_because = exchange.closing().message
        return [whole[: len(whole) // 2]]


class Changed(EveryRequest):
    """An action that changes the broker's response."""

    def answer(self, exchange: Exchange) -> Answer:
        return Running(self._changed(exchange, exchange.awaited()))

    async def _changed(self, exchange: Exchange, begun: Awaited) -> AnswerBuffers:
        buffers = await begun.buffers()
        if buffers is None:
            return None
        response = response_in(exchange.view, buffers)
        return buffers_of(exchange.view, self.change(exchange, response))

    def change(self, exchange: Exchange, response: object) -> object:
        """Returns the response to send to the client."""
        return response


class Throttle(Changed):
    """Answers with a throttle time, and mutes the connection meanwhile, like a quota."""

    def __init__(self, throttle_ms: int) -> None:
        self._throttle_ms = throttle_ms

    def change(self, exchange: Exchange, response: object) -> object:
        if hasattr(response, THROTTLE_FIELD):
            setattr(response, THROTTLE_FIELD, self._throttle_ms)
        exchange.view.connection.throttle(self._throttle_ms)
        return response


class Shuffle(Changed):
    """Shuffles topics and partitions, in the same order for the same seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def concerns(self, view: RequestView) -> bool:
        return view.header.key in SHUFFLED

    def _rank(self, topic: tuple[object, ...], partition: int) -> int:
        return crc32(repr((self._seed, topic, partition)).encode())

    def change(self, exchange: Exchange, response: object) -> object:
        setattr(response, TOPICS_FIELD, in_other_order(getattr(response, TOPICS_FIELD), self._rank))
        return response


class Refuse(EveryRequest):
    """Rejects the request, or the part of it that meets the conditions."""

    def __init__(self, code: ErrorCode, is_after: bool, *, of_coordinator: bool = False) -> None:
        self.code = code
        self._is_after = is_after
        self._of_coordinator = of_coordinator

    def concerns(self, view: RequestView) -> bool:
        return not self._of_coordinator or bool(view.subjects.groups or view.subjects.transactional_ids)

    def answer(self, exchange: Exchange) -> Answer:
        view = exchange.view
        if view.api is None or view.request is None:
            raise exchange.closing()
        if view.header.key in OVERRIDDEN:
            begun = exchange.awaited(request_frame_of(view, without_wait(view.request)))
            return Running(self._overridden(exchange, begun))
        parts = BY_PARTITION.get(view.header.key)
        refused, rest = view.request, None
        if parts is not None and exchange.fault.conditions.topic is not None:
            refused, rest = split(view.request, parts, self._is_meant(exchange))
            if is_empty(rest, parts):
                rest = None
        if rest is None and not self._is_after:
            return finished(view, self._refused(exchange, refused))
        carried_out = view.request if self._is_after else rest
        return Running(self._joined(exchange, refused, exchange.awaited(request_frame_of(view, carried_out))))

    def _is_meant(self, exchange: Exchange) -> Callable[[object, int], bool]:
        conditions, broker = exchange.fault.conditions, exchange.broker

        def is_meant(topic: object, partition: int) -> bool:
            name = topic_name(broker, topic)
            return name is not None and conditions.mean(SubjectPartition(name, partition))

        return is_meant

    def _refused(self, exchange: Exchange, request: object) -> AnswerBuffers:
        if getattr(exchange.view.request, "acks", None) == PRODUCE_WITHOUT_ANSWER:
            raise exchange.closing()
        return buffers_of(exchange.view, self._rejection(exchange.view, request))

    def _rejection(self, view: RequestView, request: object) -> object:
        assert view.api is not None
        return rejection(view.api, request, view.header.version, KafkaError(self.code))

    async def _joined(self, exchange: Exchange, refused: object, begun: Awaited) -> AnswerBuffers:
        view = exchange.view
        assert view.api is not None
        buffers = await begun.buffers()
        if buffers is None:
            raise exchange.closing()  # acks=0: a failure closes the connection
        if view.header.key not in BY_PARTITION:
            return self._refused(exchange, refused)
        response = response_in(view, buffers)
        return buffers_of(view, joined(view.api, response, self._rejection(view, refused)))

    async def _overridden(self, exchange: Exchange, begun: Awaited) -> AnswerBuffers:
        buffers = await begun.buffers()
        assert buffers is not None  # only Produce may have no answer
        response = response_in(exchange.view, buffers)
        override = OVERRIDDEN[exchange.view.header.key]
        override(exchange.broker, exchange.view, response, exchange.fault.conditions, self.code)
        return buffers_of(exchange.view, response)
