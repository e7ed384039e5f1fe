"""Tests the parts of fuzzing: draws are functions of the seed, cover all served APIs, and can be sent."""

from __future__ import annotations

import random

import pytest

from broker.handlers import APIS
from protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.fuzz import corpus
from tests.fuzz.differential import comes_apart
from tests.fuzz.drawing import Draw, versions_of
from tests.fuzz.frames import frame, head_of, request_of, with_correlation_id
from tests.fuzz.lies import batches
from tests.fuzz.limits import tame
from tests.fuzz.meant import merged, reason
from tests.fuzz.mutations import OF_BYTES, garble
from tests.fuzz.plan import Plan
from tests.fuzz.shrinking import fewest
from tests.fuzz.twins import CLOSED, NO_ANSWER, Answers
from tests.fuzz.vocabulary import INTERNAL, Group, Member, Transactional, Vocabulary
from tests.fuzz.watching import troubles_of
from tests.interop.conformance.compare import Difference

MOST_CORPUS_BYTES = 400_000
VISITS = 60


def vocabulary(mark: bytes) -> Vocabulary:
    """Returns worlds of the same shape, whose ids differ by the mark."""
    names = ["w-plain", "w-other"]
    transactionals = [Transactional("w-open", mark[0], 0), Transactional("w-done", mark[0] + 1, 1)]
    groups = [Group("w-group", [Member(f"member-{mark.hex()}", 3)]), Group("w-empty")]
    ids = {name: mark * 15 + bytes([number]) for number, name in enumerate(names)}
    return Vocabulary(names, ids, groups, transactionals, batches(transactionals))


def test_the_corpus_has_frames_of_every_api_and_version() -> None:
    frames = corpus.load()
    expected = {(int(api.key), version) for api in APIS for version in versions_of(api.request)}
    assert set(frames) == expected
    assert all(request_of(data) is not None for some in frames.values() for data in some)


def test_the_recorded_corpus_is_small_and_names_no_client() -> None:
    recorded = [data for some in corpus.recorded().values() for data in some]
    assert sum(map(len, recorded)) < MOST_CORPUS_BYTES
    assert all(data[8:14] == b"\x00\x04fuzz" and data[4:8] == bytes(4) for data in recorded)
    assert not any(b"/tmp/" in data or b"/root/" in data or b"/home/" in data for data in recorded)


def test_a_visit_is_a_function_of_its_seed_and_its_number() -> None:
    frames, world = corpus.load(), vocabulary(b"a")
    first = [Plan(7, frames).visit(number, world) for number in range(VISITS)]
    again = [Plan(7, frames).visit(number, world) for number in reversed(range(VISITS))][::-1]
    other = [Plan(8, frames).visit(number, world) for number in range(VISITS)]
    assert [visit[:3] for visit in first] == [visit[:3] for visit in again]
    assert [visit[:3] for visit in first] != [visit[:3] for visit in other]


def test_a_visit_that_behaves_has_frames_that_a_broker_can_read() -> None:
    plan, world = Plan(7, corpus.load()), vocabulary(b"a")
    visits = [plan.behaved(number, world) for number in range(5)]
    assert all(request_of(data) is not None for visit in visits for data in visit.frames)
    assert [visit[:3] for visit in visits] == [plan.behaved(number, world)[:3] for number in range(5)]


@pytest.mark.parametrize("api", list(APIS), ids=lambda api: api.key.name)
def test_worlds_of_one_shape_are_asked_the_same(api) -> None:  # type: ignore[no-untyped-def]
    ours, theirs = vocabulary(b"a"), vocabulary(b"b")
    for version in versions_of(api.request):
        drawn = [str(Draw(random.Random(version), world).request(api.request, version)) for world in (ours, theirs)]
        assert len(drawn[0].split("(")) == len(drawn[1].split("("))


def test_what_is_drawn_can_be_sent_and_is_read_as_it_was_drawn() -> None:
    world = vocabulary(b"a")
    for api in APIS:
        for version in versions_of(api.request):
            request = Draw(random.Random(version), world).request(api.request, version)
            data = frame(request, version)
            read = request_of(data)
            assert read is not None
            assert frame(*read) == data


def test_a_frame_keeps_its_correlation_id_through_garbling() -> None:
    data = with_correlation_id(next(iter(corpus.load().values()))[0], 77)
    heads = [head_of(garble(random.Random(seed), data)) for seed in range(100)]
    assert sum(head is not None and head.correlation_id == 77 for head in heads) > 80


@pytest.mark.parametrize("change", OF_BYTES, ids=lambda change: change.__name__)
def test_every_change_of_bytes_takes_any_frame(change) -> None:  # type: ignore[no-untyped-def]
    for seed in range(50):
        for size in (1, 2, 20):
            change(random.Random(seed), bytearray(range(size)))


def test_no_order_to_harm_everybody_is_sent() -> None:
    world, frames = vocabulary(b"a"), corpus.load()
    for number in range(VISITS * 5):
        for data in Plan(3, frames).visit(number, world).frames:
            read = request_of(data)
            if read is not None and type(read[0]).__name__ == "DeleteTopicsRequest":
                assert not set(INTERNAL) & {*read[0].topic_names, *(topic.name for topic in read[0].topics or ())}
            if read is not None:
                assert tame(*read, world)


def test_the_fewest_connections_that_fail_are_those_that_it_takes() -> None:
    assert fewest(range(100), lambda left: {17, 63} <= set(left)) == [17, 63]
    assert fewest(range(100), lambda left: 5 in left) == [5]


def test_a_trace_back_and_an_error_are_troubles_and_a_closed_connection_is_none() -> None:
    closed = '{"event": "connection closed", "level": "warning", "peer": "127.0.0.1:5"}'
    failed = '{"event": "request failed", "level": "error", "peer": "127.0.0.1:5"}'
    trace = ["Traceback (most recent call last):", '  File "x"', "IndexError: no"]
    assert troubles_of(["$ odradek run", "ready 127.0.0.1:1", closed]) == []
    assert [trouble.port for trouble in troubles_of([closed, failed])] == [5]
    assert len(troubles_of([*trace, closed, *trace])) == 1


def test_what_is_named_twice_is_the_same_as_what_is_named_once() -> None:
    twice = [
        {"name": "t", "partitions": [{"partition_index": 0}]},
        {"name": "t", "partitions": [{"partition_index": 0}]},
    ]
    once = [{"name": "t", "partitions": [{"partition_index": 0}]}]
    other = [{"name": "t", "partitions": [{"partition_index": 1}]}]
    assert merged(twice) == merged(once) != merged(other)
    assert merged([*once, {"name": "u", "partitions": []}]) == merged(once)


@pytest.mark.parametrize("answer", [CLOSED, NO_ANSWER])
def test_worlds_come_apart_where_a_connection_ends_even_over_a_question(answer: str) -> None:
    assert comes_apart(Answers(ListGroupsRequest(), 0, {"error_code": 0}, answer))
    assert not comes_apart(Answers(ListGroupsRequest(), 0, {"error_code": 0}, {"error_code": 1}))


def test_only_a_negative_cursor_is_meant() -> None:
    request = DescribeTopicPartitionsRequest(topics=[], response_partition_limit=1)

    def why(ours: object, partition: int) -> str | None:
        theirs = {"topic_name": "empty", "partition_index": partition}
        difference = Difference(request, 0, ".next_cursor", ours, theirs)
        return reason(difference, Answers(request, 0, {"next_cursor": ours}, {"next_cursor": theirs}))

    assert why(None, -(1 << 31)) is not None
    assert why(None, 1) is None
    assert why({"topic_name": "empty", "partition_index": 0}, -(1 << 31)) is None


@pytest.mark.parametrize(("version", "ours", "theirs", "is_meant"), [
    (3, 48, 120, True), (4, 120, 48, True), (3, 120, 48, False), (4, 48, 120, False), (5, 120, 48, False),
    (3, 0, 120, False),
])  # fmt: skip
def test_offsets_outside_a_transaction_are_told_by_the_first_version(
    version: int, ours: int, theirs: int, is_meant: bool
) -> None:
    request = TxnOffsetCommitRequest(
        transactional_id="t", group_id="g", producer_id=1, producer_epoch=0, member_id="", topics=[]
    )
    difference = Difference(request, version, ".topics[0].partitions[0].error_code", ours, theirs)
    answers = Answers(request, version, {"error_code": ours}, {"error_code": theirs})
    assert (reason(difference, answers) is not None) == is_meant
