"""Tests the quota of changes to the cluster: a bucket of tokens, and the tokens that a request takes."""

from __future__ import annotations

import math

import pytest

from coordinator.cluster.controller import Asker
from coordinator.cluster.decisions import DecisionState, decide
from coordinator.cluster.image import Image
from coordinator.cluster.security.mutation_quota import Charges, MutationQuota, TokenBucket
from coordinator.cluster.topics.create import create_topics
from coordinator.cluster.topics.create_partitions import create_partitions
from coordinator.cluster.topics.delete import delete_topics
from coordinator.engine.result import Ticket
from coordinator.rate import MAX_WAIT_MS
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.delete_topics import DeleteTopicsRequest
from protocol.metadata_records.topics import RemoveTopicRecord, TopicRecord
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import OPTIONS, RULES, TOPIC_ID

NOW_MS = 1_000_000
RATE = 2.0
BURST_S = 11
EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


def bucket() -> TokenBucket:
    return TokenBucket(BURST_S)


def quota(of: TokenBucket, now_ms: int = NOW_MS, rate: float = RATE, *, is_strict: bool = True) -> MutationQuota:
    return MutationQuota(of, rate, now_ms, is_strict=is_strict)


def charge(of: MutationQuota, partitions: int) -> None:
    """Makes a decision that charges this number of partitions, and carries it out."""
    charges = Charges(of)
    try:
        charges.charge(partitions)
    finally:
        charges.take()


class Charged:
    """Lets this number of partitions through, and records them."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.partitions: list[int] = []

    def __call__(self, partitions: int) -> None:
        if self.room < 0:
            raise KafkaError(EXCEEDED)
        self.room -= partitions
        self.partitions.append(partitions)


def test_a_bucket_begins_full_and_fills_at_its_rate_no_further_than_its_burst() -> None:
    one = bucket()
    assert one.tokens(RATE, NOW_MS) == 22
    one.take(30, RATE, NOW_MS)
    assert one.tokens(RATE, NOW_MS) == -8
    assert one.tokens(RATE, NOW_MS + 3_000) == -2
    assert one.tokens(RATE, NOW_MS + 60_000) == 22


def test_a_rate_that_changes_leaves_what_is_in_the_bucket() -> None:
    one = bucket()
    one.take(30, RATE, NOW_MS)
    assert one.tokens(10 * RATE, NOW_MS + 100) == -6
    assert one.tokens(1.0, NOW_MS + 60_000) == 11


def test_a_strict_quota_may_be_overdrawn_once_and_is_closed_until_the_bucket_is_not() -> None:
    one = bucket()
    first = quota(one)
    charge(first, 26)
    assert first.throttle_ms(NOW_MS) == 0
    second = quota(one)
    with pytest.raises(KafkaError) as caught:
        charge(second, 1)
    assert caught.value.code is EXCEEDED
    assert second.throttle_ms(NOW_MS) == 2_000
    assert second.throttle_ms(NOW_MS + 500) == 1_500
    assert second.throttle_ms(NOW_MS + 5_000) == 0
    later = quota(one, NOW_MS + 2_000)
    charge(later, 1)
    assert later.throttle_ms(NOW_MS + 2_000) == 0


def test_a_permissive_quota_takes_all_and_has_its_client_wait() -> None:
    one = bucket()
    first, second = quota(one, is_strict=False), quota(one, is_strict=False)
    charge(first, 26)
    assert first.throttle_ms(NOW_MS) == 2_000
    charge(second, 2)
    assert second.throttle_ms(NOW_MS) == 3_000


@pytest.mark.parametrize("rate", [5e-324, 1e-9, 1e300, math.inf])
def test_no_rate_is_too_small_or_too_large(rate: float) -> None:
    one = bucket()
    permissive = quota(one, rate=rate, is_strict=False)
    charge(permissive, 1)
    assert permissive.throttle_ms(NOW_MS) in ((MAX_WAIT_MS,) if rate < 1 else (0,))


def decision_state(image: Image) -> DecisionState:
    ids = given.ids(*(bytes([letter]) * 16 for letter in b"abcdef"))
    return DecisionState(image, given.sessions(image), OPTIONS, RULES, ids, NOW_MS, NOW_MS, lambda _: None)


def test_a_decision_takes_nothing_from_the_bucket_until_it_is_carried_out() -> None:
    one = bucket()
    asker = Asker(quota=quota(one))
    request = CreateTopicsRequest(topics=[given.creatable(name, 20, 1) for name in ("a", "b", "c")], timeout_ms=1000)
    image = given.image()
    first, second = (decide(decision_state(image), request, Ticket(), asker) for _ in range(2))
    assert one.tokens(RATE, NOW_MS) == 22
    for decided in (first, second):
        (reply,) = decided.replies
        assert isinstance(reply.answer, CreateTopicsResponse)
        assert [topic.error_code for topic in reply.answer.topics] == [0, 0, EXCEEDED]
    (effect,) = first.effects
    effect()
    assert one.tokens(RATE, NOW_MS) == -18
    assert asker.quota is not None
    assert asker.quota.throttle_ms(NOW_MS) == 9_000


def test_topics_are_created_as_far_as_the_quota_goes() -> None:
    charged = Charged(3)
    topics = [given.creatable(name, 3, 1) for name in ("a", "b", "c")]
    request = CreateTopicsRequest(topics=[*topics, given.creatable("a b", 3, 1)], timeout_ms=1000)
    ids = given.ids(b"a" * 16, b"b" * 16, b"c" * 16, b"d" * 16)
    decided = given.decide(create_topics, given.image(), request, OPTIONS, RULES, ids, charge=charged)
    codes = [result.error_code for result in decided.answer.topics]
    assert codes == [0, 0, EXCEEDED, ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert charged.partitions == [3, 3]
    assert [record.name for record in decided.records if isinstance(record, TopicRecord)] == ["a", "b"]


def test_a_validation_is_charged_as_a_creation() -> None:
    charged = Charged(3)
    request = CreateTopicsRequest(topics=[given.creatable("a", 3, 1)], timeout_ms=1000, validate_only=True)
    given.decide(create_topics, given.image(), request, OPTIONS, RULES, given.ids(b"a" * 16), charge=charged)
    assert charged.partitions == [3]


def test_only_additional_partitions_are_charged() -> None:
    charged = Charged(0)
    image = given.image(*given.topic("orders"))
    topic = CreatePartitionsTopic(name="orders", count=5, assignments=None)
    absent = CreatePartitionsTopic(name="absent", count=4, assignments=None)
    given.decide(
        create_partitions,
        image,
        CreatePartitionsRequest(topics=[absent, topic], timeout_ms=1000, validate_only=False),
        charged,
    )
    assert charged.partitions == [4]
    again = given.decide(
        create_partitions, image, CreatePartitionsRequest(topics=[topic], timeout_ms=1000, validate_only=False), charged
    )
    assert (again.records, again.answer.results[0].error_code) == ([], EXCEEDED)


def test_a_topic_that_the_quota_has_no_room_for_is_not_deleted() -> None:
    charged = Charged(0)
    image = given.image(*given.topic("orders"))
    request = DeleteTopicsRequest(topic_names=["absent", "orders"], timeout_ms=1000)
    decided = given.decide(delete_topics, image, request, OPTIONS, 5, charge=charged)
    assert decided.records == [RemoveTopicRecord(topic_id=TOPIC_ID)]
    assert charged.partitions == [1]
    refused = given.decide(delete_topics, image, request, OPTIONS, 5, charge=charged)
    assert refused.records == []
    assert [one.error_code for one in refused.answer.responses] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, EXCEEDED]
