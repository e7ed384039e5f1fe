"""Compares fetch sessions (KIP-227) with Apache Kafka, step by step: the partitions that are answered and left out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.types import NO_UUID
from tests.interop.conformance.compare import Both
from tests.interop.conformance.deleting import delete_records
from tests.interop.conformance.fetching import FINAL_EPOCH, FIRST_EPOCH, NO_SESSION, FetchFrom, fetch
from tests.interop.conformance.peers import Peer
from tests.interop.conformance.producing import request as produce_request
from tests.interop.conformance.records import batch

FIRST_SESSION_VERSION = 7
FIRST_ID_VERSION = 13
PRODUCE_VERSION = 11
DELETE_TOPICS_VERSION = 6
UNKNOWN_SESSION = 123_456_789


class Session:
    """A client's side of a fetch session."""

    def __init__(self, peer: Peer, version: int, topic: str) -> None:
        self.peer = peer
        self.version = version
        self.topic = topic
        self.id = NO_SESSION
        self.epoch = FIRST_EPOCH

    def next(self, *offsets: int | None, wait_ms: int = 0, **options: object) -> FetchResponse:
        """Sends the next fetch, with offsets for the topic's partitions from the first on."""
        requested = [FetchFrom(self.topic, index, offset) for index, offset in enumerate(offsets) if offset is not None]
        return self.ask(*requested, max_wait_ms=wait_ms, min_bytes=1, **options)

    def ask(self, *requested: FetchFrom, **options: object) -> FetchResponse:
        request = fetch(self.peer, *requested, session=(self.id, self.epoch), **options)  # type: ignore[arg-type]
        answer = self.peer.ask(request, self.version, FetchResponse)
        self.id = answer.session_id or self.id
        self.epoch += 1
        return answer

    def produce(self, partition: int, count: int = 1) -> None:
        request = produce_request(self.topic, NO_UUID, (partition, batch(count)))
        self.peer.quietly(request, PRODUCE_VERSION)


def continued(session: Session) -> None:
    session.next(0, 0, 0)
    session.next()
    session.produce(1, 3)
    session.next()
    session.next(None, 3)
    session.next()
    session.produce(0)
    session.produce(2)
    session.next(1)
    session.next(1, None, 1, wait_ms=20)


def read_again(session: Session) -> None:
    """Fetches again at the same offsets: the same records are returned again."""
    session.produce(0, 2)
    session.next(0, 0)
    session.next()
    session.next(2)
    session.next()


def grown_and_forgotten(session: Session) -> None:
    session.next(0)
    session.produce(0)
    session.produce(1)
    session.next(None, 0)
    session.next(1, 1, 0)
    session.next(forgotten=((session.topic, 0),))
    session.produce(0)
    session.produce(1)
    session.next()
    session.next(forgotten=((session.topic, 0), ("nowhere", 0), (session.topic, 9)))
    session.next(1, forgotten=((session.topic, 0),))
    session.next(forgotten=((session.topic, 1), (session.topic, 2)))
    session.next()


def emptied(session: Session) -> None:
    session.next(0)
    session.next(forgotten=((session.topic, 0),))
    session.next(0)


def begun_with_nothing(session: Session) -> None:
    session.next()
    session.next(0)


def begun_again(session: Session) -> None:
    session.next(0, 0)
    session.epoch = FIRST_EPOCH
    session.next(0)
    session.next()


def closed(session: Session) -> None:
    session.next(0, 0)
    last = session.epoch
    session.epoch = FINAL_EPOCH
    session.next(0)
    session.epoch = last
    session.next()


def of_another_epoch(session: Session) -> None:
    session.next(0, 0)
    session.epoch = 5
    session.next()
    session.epoch = 1
    session.next()
    session.epoch = -2
    session.next()


def of_an_unknown_id(session: Session) -> None:
    session.id, session.epoch = UNKNOWN_SESSION, 1
    session.next(0)
    session.next()
    session.epoch = FINAL_EPOCH
    session.next(0)
    session.id, session.epoch = NO_SESSION, 1
    session.next(0)
    session.id, session.epoch = UNKNOWN_SESSION, FIRST_EPOCH
    session.next(0)


def with_errors(session: Session) -> None:
    session.ask(
        FetchFrom(session.topic, 0, 99), FetchFrom(session.topic, 9), FetchFrom(session.topic, 1), FetchFrom("nowhere")
    )
    session.next()
    session.next(0)
    session.next()
    session.next(forgotten=((session.topic, 9), ("nowhere", 0)))
    session.next()


def whose_log_begins_later(session: Session) -> None:
    for _ in range(3):
        session.produce(0)
    session.next(0)
    session.next(3)
    delete_records(session.peer, session.topic, 2)
    session.next()
    session.next()


def whose_turns_change(session: Session) -> None:
    """A partition that returned records is served last the next time."""
    for index in range(3):
        session.produce(index, 4)
    size = len(batch(4))
    session.next(0, 0, 0, max_bytes=size)
    for _ in range(4):
        session.next(max_bytes=size)


def whose_topic_goes(session: Session) -> None:
    name = session.topic
    session.next(0)
    topic = DeleteTopicState(name=name, topic_id=NO_UUID)
    session.peer.quietly(
        DeleteTopicsRequest(topics=[topic], topic_names=[name], timeout_ms=5000), DELETE_TOPICS_VERSION
    )
    session.peer.wait_until_gone(name)
    session.next()
    session.peer.create(name)
    session.produce(0)
    session.next()
    session.next(0)


STORIES: tuple[Callable[[Session], None], ...] = (
    continued,
    read_again,
    grown_and_forgotten,
    emptied,
    begun_with_nothing,
    begun_again,
    closed,
    of_another_epoch,
    of_an_unknown_id,
    with_errors,
    whose_log_begins_later,
    whose_turns_change,
    whose_topic_goes,
)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_sessions(both: Both, story: Callable[[Session], None]) -> None:
    *_, newest = both.pair.versions(FetchRequest)

    def script(peer: Peer) -> None:
        for version in (FIRST_SESSION_VERSION, FIRST_ID_VERSION - 1, FIRST_ID_VERSION, newest):
            name = f"session-{story.__name__}-{version}"
            peer.create(name, 3)
            story(Session(peer, version, name))

    both(script)


@pytest.mark.parametrize("versions", [(12, 13), (13, 12)])
def test_a_session_does_not_go_from_names_to_ids(both: Both, versions: tuple[int, int]) -> None:
    def script(peer: Peer) -> None:
        name = f"session-of-two-{versions[0]}"
        peer.create(name, 1)
        session = Session(peer, versions[0], name)
        session.next(0)
        session.version = versions[1]
        session.next()
        session.next(0)
        session.version = versions[0]
        session.next()

    both(script)
