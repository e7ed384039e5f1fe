"""A client of a whole cluster: finds leaders, coordinators and the controller, and sends requests to the right
broker."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable
from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

from cli.parser import did_you_mean
from client.address import Address
from client.errors import ConnectionClosed, PeerError, PeerUnavailable, RequestTimedOut
from commands.client.links import Link, Links, Moments
from commands.errors import (
    NOT_KAFKA,
    BrokerUnreachable,
    CommandError,
    CoordinatorAway,
    NoBrokerAnswered,
    explain,
    from_kafka,
    hint,
    raise_if,
    refusal,
)
from protocol.backoff import Backoff
from protocol.errors import RETRIABLE, ErrorCode, KafkaError, ProtocolError, error_code
from protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from protocol.types import uuid_to_text
from protocol.versions import ANY_VERSION

R = TypeVar("R")
T = TypeVar("T")

PAUSE: Final = Backoff(initial_ms=100, max_ms=1000)
"""Pauses between attempts after a retriable error (retry.backoff.ms of Kafka's clients)."""


FIRST_ROUND_MS: Final = 1000
"""Time that each of several addresses has to connect and answer, before the next address is asked."""


SILENT_MS: Final = 10_000
"""Time for which a broker that didn't answer in time isn't asked again, so that a command waits for it once. It is
longer than what `doctor` does between two looks at a broker: a share coordinator's wait (5 s) and the watch (3 s)."""


class Silent(NamedTuple):
    """The error of a broker that didn't answer, which all requests get for a while."""

    until_ms: int
    error: BrokerUnreachable


class CoordinatorKind(IntEnum):
    """The kinds of things that have a coordinator (KIP-98)."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2
    """The coordinator of a share partition's state, found by group, topic id and partition (KIP-932)."""


def draw() -> float:
    """Returns a random number from 0 up to 1, for pauses."""
    return int.from_bytes(os.urandom(4), "big") / (1 << 32)


def draw_id() -> str:
    """Returns a random UUID, which a group member uses as its member id (KIP-1082)."""
    return uuid_to_text(os.urandom(16))


class ClusterClient:
    """The brokers of one cluster."""

    def __init__(self, links: Links, timeout_ms: int) -> None:
        """Each request may take `timeout_ms`."""
        self.timeout_ms = timeout_ms
        self._links = links
        self._first: Link | None = None
        """The broker that answered first."""
        self._addresses: dict[int, Address] = {}
        self._controller = -1
        self._silent: dict[int, Silent] = {}
        """The brokers that let the last attempt to connect time out."""
        self._coordinators: dict[tuple[CoordinatorKind, str], int] = {}
        self.throttled_ms = 0
        """The longest throttle time in an answer, caused by a quota."""

    async def __aenter__(self) -> ClusterClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._links.close()

    @property
    def clock(self) -> Moments:
        return self._links.clock

    async def together(self, awaitables: Iterable[Awaitable[T]]) -> list[T]:
        """Returns the results of all awaitables, which run at the same time in a command that is declared
        concurrent."""
        return await self._links.together(awaitables)

    async def pause(self, delay_ms: int) -> None:
        """Waits for `delay_ms`."""
        await self._links.pause(delay_ms)

    # Metadata.

    async def metadata(self, topics: Iterable[str] | None = (), *, create: bool = False) -> MetadataResponse:
        """Returns the brokers and the named topics; None names all topics."""
        named = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=named, allow_auto_topic_creation=create)

        async def ask() -> tuple[int, MetadataResponse]:
            answer = await self.any(request, MetadataResponse)
            is_served = answer.brokers or answer.error_code
            return (0 if is_served else ErrorCode.BROKER_NOT_AVAILABLE), answer

        response = await self.until_settled(ask, NO_BROKERS)
        raise_if("the cluster", response.error_code)
        if not response.brokers:
            raise BrokerUnreachable("the cluster has no active broker: all brokers are fenced")
        self._addresses = {broker.node_id: Address(broker.host, broker.port) for broker in response.brokers}
        self._controller = response.controller_id
        self._links.place(self._addresses)
        return response

    async def nodes(self) -> list[int]:
        """Returns the ids of the brokers."""
        if not self._addresses:
            await self.metadata()
        return sorted(self._addresses)

    async def topic(self, name: str) -> MetadataResponseTopic:
        """Returns a topic, with its partitions in order. Raises CommandError if it doesn't exist."""
        (topic,) = await self.topics([name])
        return topic

    async def topics(self, names: Iterable[str] | None) -> list[MetadataResponseTopic]:
        """Returns topics sorted by name; None returns all. Raises CommandError if a topic doesn't exist."""
        response = await self.metadata(names)
        for topic in response.topics:
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and topic.name is not None:
                existing = [other.name for other in (await self.metadata(None)).topics if other.name is not None]
                advice = did_you_mean(topic.name, existing)
                raise CommandError(f"topic {topic.name}: {explain(topic.error_code)}{advice}")
            raise_if(f"topic {topic.name}", topic.error_code)
            topic.partitions.sort(key=lambda partition: partition.partition_index)
        return sorted(response.topics, key=lambda topic: topic.name or "")

    # Requests.

    async def any(self, request: object, response: type[R], *, max_version: int = ANY_VERSION) -> R:
        """Sends a request that any broker can answer: to the broker that answered before, else to the bootstrap
        addresses, then to the other brokers. Several addresses have FIRST_ROUND_MS each at first, so that a silent one
        delays the command only for a moment."""
        before = self._first
        known = [self._links.node(node) for node in self._addresses]
        addresses = {peer.address for peer in self._links.bootstrap}
        others = [*self._links.bootstrap, *(peer for peer in known if peer.address not in addresses)]
        rounds = [([before], self.timeout_ms)] if before is not None else []
        if len(others) > 1:
            rounds.append((others, min(FIRST_ROUND_MS, self.timeout_ms)))
        rounds.append((others, self.timeout_ms))
        reasons: list[str] = []
        for peers, timeout_ms in rounds:
            reasons.clear()
            for peer in peers:
                try:
                    answer = await peer.send(
                        request, response, timeout_ms=timeout_ms, max_version=max_version, max_dials=1
                    )
                except (PeerUnavailable, RequestTimedOut) as error:
                    reasons.append(str(error))
                except ProtocolError as error:
                    reasons.append(f"{error.message}: {NOT_KAFKA}")
                else:
                    self._first = peer
                    self._note_throttling(answer)
                    return answer
                if self._first is peer:  # requests at the same time keep another that has answered
                    self._first = None
        where = "; ".join(reasons)
        advice = hint(where, "set --bootstrap or ODRADEK_BOOTSTRAP to a broker's address")
        raise NoBrokerAnswered(f"no broker answered ({where}); {advice}")

    async def node(
        self,
        node: int,
        request: object,
        response: type[R],
        *,
        max_version: int = ANY_VERSION,
        timeout_ms: int | None = None,
    ) -> R:
        """Sends a request to one broker."""
        if node not in self._addresses:
            await self.metadata()
        if node not in self._addresses:
            ids = ", ".join(map(str, sorted(self._addresses)))
            raise CommandError(f"broker {node}: not in the cluster; its brokers are {ids}")
        allowed_ms = self.timeout_ms if timeout_ms is None else timeout_ms
        started_ms = self.clock.monotonic_ms()
        if (silent := self._silent.get(node)) is not None and started_ms < silent.until_ms:
            raise silent.error
        try:
            answer = await self._links.node(node).send(
                request, response, timeout_ms=allowed_ms, max_version=max_version, max_dials=1
            )
        except ConnectionClosed as error:  # a metadata update has changed the broker's address
            raise BrokerUnreachable(f"broker {node} is no longer at {error.peer}", sent=error.sent) from None
        except PeerUnavailable as error:
            advice = "the broker advertises this address (advertised.listeners)"
            unreachable = BrokerUnreachable(
                f"broker {node} at {error.peer}: {error.message}; {advice}", sent=error.sent
            )
            now_ms = self.clock.monotonic_ms()
            if not error.sent and now_ms - started_ms >= FIRST_ROUND_MS:
                self._silent[node] = Silent(now_ms + SILENT_MS, unreachable)
            raise unreachable from None
        self._note_throttling(answer)
        return answer

    def _note_throttling(self, answer: object) -> None:
        throttled_ms: int = getattr(answer, "throttle_time_ms", 0)
        self.throttled_ms = max(self.throttled_ms, throttled_ms)

    async def tell(self, node: int, request: object, *, max_version: int = ANY_VERSION) -> None:
        """Sends one broker a request without an answer: a Produce with acks=0."""
        await self.nodes()
        await self._links.node(node).tell(request, timeout_ms=self.timeout_ms, max_version=max_version)

    async def every(
        self, request: object, response: type[R], *, max_version: int = ANY_VERSION
    ) -> dict[int, R | CommandError]:
        """Returns the answer of each broker, or the error of a broker that can't be asked, by broker id."""
        nodes = await self.nodes()
        answers = await self.together(
            outcome(self.node(node, request, response, max_version=max_version)) for node in nodes
        )
        return dict(zip(nodes, answers, strict=True))

    async def controller(self, request: object, response: type[R], *, max_version: int = ANY_VERSION) -> R:
        """Sends a request to the controller; in a KRaft cluster to a broker that forwards it. If that broker can't be
        connected to, sends it to another broker."""
        if self._controller < 0:
            await self.metadata()
        if self._controller < 0:
            raise refusal("the cluster has no controller at the moment", ErrorCode.LEADER_NOT_AVAILABLE)
        others = iter([node for node in await self.nodes() if node != self._controller])
        node = self._controller
        while True:
            try:
                return await self.node(node, request, response, max_version=max_version)
            except BrokerUnreachable as error:
                following = next(others, None)
                if error.sent or following is None:
                    raise
                node = self._controller = following

    async def coordinated(
        self,
        kind: CoordinatorKind,
        key: str,
        request: object,
        response: type[R],
        *,
        code: Callable[[R], int] = lambda answer: int(getattr(answer, "error_code", 0)),
        max_version: int = ANY_VERSION,
        timeout_ms: int | None = None,
        retriable: frozenset[ErrorCode] | None = None,
    ) -> R:
        """Sends a request to a coordinator. Finds the coordinator and asks again while the answer's error, which `code`
        extracts, is in `retriable` (by default: the coordinator has moved or is loading). Returns the last answer when
        the timeout is over."""

        async def ask() -> tuple[int, R]:
            node = await self.coordinator(kind, key)
            try:
                answer = await self.node(node, request, response, max_version=max_version, timeout_ms=timeout_ms)
            except (BrokerUnreachable, RequestTimedOut):
                # The next attempt looks up the coordinator and the brokers' addresses again.
                self._coordinators.pop((kind, key), None)
                self._addresses = {}
                raise
            if (error := code(answer)) in COORDINATOR_MOVED:
                self._coordinators.pop((kind, key), None)
            return error, answer

        return await self.until_settled(ask, retriable or COORDINATOR_MOVED)

    async def of_group(self, group: str, request: object, response: type[R], *, timeout_ms: int | None = None) -> R:
        """Sends a member's request to the group's coordinator. Raises CoordinatorAway if the coordinator is still
        moving or loading at the request timeout."""
        answer = await self.coordinated(CoordinatorKind.GROUP, group, request, response, timeout_ms=timeout_ms)
        if (code := int(getattr(answer, "error_code", 0))) in COORDINATOR_MOVED:
            raise CoordinatorAway(f"group {group}: {explain(code)}")
        return answer

    async def coordinator(self, kind: CoordinatorKind, key: str) -> int:
        """Returns the id of the broker that coordinates a group, a transactional id or a share partition."""
        if (kind, key) in self._coordinators:
            return self._coordinators[kind, key]
        await self.nodes()

        async def ask() -> tuple[int, FindCoordinatorResponse | Coordinator]:
            request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
            answer = await self.any(request, FindCoordinatorResponse)
            entry = answer.coordinators[0] if answer.coordinators else answer  # a list since version 4
            return entry.error_code, entry

        entry = await self.until_settled(ask, COORDINATOR_MOVED)
        if entry.error_code in COORDINATOR_MOVED:
            raise CoordinatorAway(f"the coordinator of {key}: {explain(entry.error_code, entry.error_message)}")
        raise_if(f"the coordinator of {key}", entry.error_code, entry.error_message)
        self._coordinators[kind, key] = entry.node_id
        return entry.node_id

    async def until_settled(
        self, ask: Callable[[], Awaitable[tuple[int, R]]], retriable: frozenset[ErrorCode] = RETRIABLE
    ) -> R:
        """Asks again, after a pause, while the answer's error is in `retriable`. Returns the last answer when the
        timeout is over."""
        deadline_ms = self.clock.monotonic_ms() + self.timeout_ms
        failures = 0
        while True:
            code, answer = await ask()
            if not code or error_code(code) not in retriable or self.clock.monotonic_ms() >= deadline_ms:
                return answer
            failures += 1
            await self.pause(PAUSE.delay_ms(failures, draw()))


NO_BROKERS: Final = frozenset({ErrorCode.BROKER_NOT_AVAILABLE})
"""The error of a cluster whose brokers are all fenced. A single broker that was too busy to send its heartbeat is
fenced too, for a moment, and lists no brokers meanwhile."""

COORDINATOR_MOVED: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


def leaders(
    topic: MetadataResponseTopic, *, skip_leaderless: bool = False
) -> dict[int, list[MetadataResponsePartition]]:
    """Returns a topic's partitions by leader. Skips a partition without a leader, or raises CommandError."""
    by_leader: dict[int, list[MetadataResponsePartition]] = {}
    for partition in topic.partitions:
        if partition.leader_id < 0:
            if skip_leaderless:
                continue
            raise refusal(f"{topic.name}-{partition.partition_index}", ErrorCode.LEADER_NOT_AVAILABLE)
        by_leader.setdefault(partition.leader_id, []).append(partition)
    return by_leader


FAILURES: Final = (CommandError, KafkaError, PeerError)
"""All errors of a request except ProtocolError."""


async def outcome(awaitable: Awaitable[T]) -> T | CommandError:
    """Returns the result of a request, or its error, for commands that answer what can be answered. Raises
    NoBrokerAnswered."""
    try:
        return await awaitable
    except NoBrokerAnswered:
        raise
    except CommandError as error:
        return error
    except KafkaError as error:
        return from_kafka(error)
    except PeerError as error:
        return CommandError(str(error))
