"""Tests CreateTopics: the records of created topics, and the errors of rejected ones."""

from __future__ import annotations

import pytest

from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.image import Image
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.topics.create import create_topics
from protocol.config import ConfigSource
from protocol.errors import ErrorCode
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from protocol.metadata_records.nodes import BrokerRegistrationChangeRecord
from protocol.metadata_records.topics import TopicRecord
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import NODE, OPTIONS, RULES, creatable, partition, topic_config

A, B = b"id-of-topic-a---", b"id-of-topic-b---"


def create(
    *topics: CreatableTopic,
    image: Image | None = None,
    options: ClusterOptions = OPTIONS,
    validate_only: bool = False,
    rules: ConfigRules = RULES,
) -> given.Decision[CreateTopicsResponse]:
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    return given.decide(create_topics, image or given.image(), request, options, rules, given.ids(A, B))


def refusal(*topics: CreatableTopic, image: Image | None = None) -> tuple[int, str | None]:
    decided = create(*topics, image=image)
    assert not decided.records
    (result,) = decided.answer.topics
    return result.error_code, result.error_message


def test_a_topic_is_its_record_then_its_configs_then_its_partitions() -> None:
    decided = create(creatable("orders", 2, 1, {"retention.ms": "1000"}))
    assert decided.records == [
        TopicRecord(name="orders", topic_id=A),
        topic_config("orders", "retention.ms", "1000"),
        partition(0, A),
        partition(1, A),
    ]


def test_the_result_tells_id_counts_and_effective_configs() -> None:
    (result,) = create(creatable("orders", 2, 1, {"retention.ms": "1000"})).answer.topics
    assert (result.topic_id, result.error_code, result.num_partitions, result.replication_factor) == (A, 0, 2, 1)
    configs = {config.name: (config.value, config.config_source) for config in result.configs or ()}
    assert configs["retention.ms"] == ("1000", ConfigSource.TOPIC)
    assert configs["segment.bytes"] == ("1073741824", ConfigSource.DEFAULT)
    assert list(configs) == sorted(configs)
    assert not any(config.read_only or config.is_sensitive for config in result.configs or ())


def test_the_result_has_an_internal_config_only_if_the_topic_sets_it() -> None:
    topics = creatable("small", configs={"internal.segment.bytes": "1000"}), creatable("usual")
    values = [
        [config.value for config in result.configs or () if config.name == "internal.segment.bytes"]
        for result in create(*topics).answer.topics
    ]
    assert values == [["1000"], []]


def test_effective_configs_fall_back_to_the_brokers_in_their_units() -> None:
    image = given.image(given.broker_config("", "log.segment.bytes", "2000000"))
    image.apply(given.broker_config(str(NODE), "log.flush.interval.ms", "7"))
    rules = ConfigRules(NODE, {"log.retention.hours": "2", "log.segment.bytes": "9999999"})
    (result,) = create(creatable("orders"), image=image, rules=rules).answer.topics
    configs = {config.name: (config.value, config.config_source) for config in result.configs or ()}
    assert configs["retention.ms"] == ("7200000", ConfigSource.STATIC_BROKER)
    assert configs["segment.bytes"] == ("2000000", ConfigSource.DEFAULT_BROKER)
    assert configs["flush.ms"] == ("7", ConfigSource.BROKER)


def test_configs_are_not_told_to_who_may_not_describe_them() -> None:
    request = CreateTopicsRequest(topics=[creatable("orders", 3, 1)])
    decided = given.decide(create_topics, given.image(), request, OPTIONS, RULES, given.ids(A), describable=())
    (result,) = decided.answer.topics
    assert result.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (result.configs, result.num_partitions, result.replication_factor) == ([], -1, -1)
    assert len(decided.records) == 4


def test_counts_left_open_are_the_brokers_defaults() -> None:
    decided = create(creatable("orders"), options=OPTIONS._replace(num_partitions=3))
    assert decided.records == given.topic("orders", 3, A)


def test_a_validation_leaves_no_records() -> None:
    decided = create(creatable("orders", 2, 1), validate_only=True)
    assert not decided.records
    assert decided.answer.topics[0].num_partitions == 2


def test_one_bad_topic_does_not_keep_the_others() -> None:
    decided = create(creatable("bad name"), creatable("good"))
    assert decided.records == given.topic("good", 1, A)
    assert [one.error_code for one in decided.answer.topics] == [ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.NONE]


def test_a_topic_that_is_named_twice_is_created_not_once() -> None:
    assert refusal(creatable("orders"), creatable("orders")) == (ErrorCode.INVALID_REQUEST, "Duplicate topic name.")


def test_a_topic_that_is_there_is_not_created_again() -> None:
    image = given.image(*given.topic("orders"))
    assert refusal(creatable("orders"), image=image) == (
        ErrorCode.TOPIC_ALREADY_EXISTS,
        "Topic 'orders' already exists.",
    )


def test_names_that_differ_in_dot_and_underscore_only_collide() -> None:
    image = given.image(*given.topic("a.b_c"))
    assert refusal(creatable("a_b.c"), image=image) == (
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "Topic 'a_b.c' collides with existing topic: a.b_c",
    )


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("a" * 250, f"the length of '{'a' * 250}' is longer than the max allowed length 249"),
        ("a b", "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("é", "'é' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ],
)
def test_an_illegal_name_is_told_what_is_wrong_with_it(name: str, problem: str) -> None:
    assert refusal(creatable(name)) == (ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")


def test_the_metadata_log_is_no_topic_to_create() -> None:
    assert refusal(creatable("__cluster_metadata")) == (
        ErrorCode.INVALID_REQUEST,
        "Creation of internal topic __cluster_metadata is prohibited.",
    )


@pytest.mark.parametrize(("partitions", "factor", "code"), [
    (0, 1, ErrorCode.INVALID_PARTITIONS),
    (-2, 1, ErrorCode.INVALID_PARTITIONS),
    (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
    (1, -2, ErrorCode.INVALID_REPLICATION_FACTOR),
])  # fmt: skip
def test_counts_are_positive_or_left_open(partitions: int, factor: int, code: ErrorCode) -> None:
    assert refusal(creatable("orders", partitions, factor))[0] == code


def test_more_replicas_than_brokers_cannot_be() -> None:
    assert refusal(creatable("orders", 1, 3)) == (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because "
        "only 1 broker(s) are registered or some brokers have all their log directories cordoned.",
    )


def test_the_development_profile_lowers_the_replication_factor_to_the_brokers_there_are() -> None:
    decided = create(creatable("orders", 1, 3), options=OPTIONS._replace(clamp_replication_factor=True))
    assert decided.records == given.topic("orders", 1, A)
    assert decided.answer.topics[0].replication_factor == 1


def test_nothing_is_placed_on_a_fenced_broker_alone() -> None:
    image = given.image()
    fenced = BrokerRegistrationChangeRecord(broker_id=NODE, broker_epoch=image.brokers[NODE].epoch, fenced=1)
    image.apply(fenced)
    code, message = refusal(creatable("orders"), image=image)
    assert code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert message is not None
    assert "All brokers are currently fenced" in message


def test_an_assignment_by_hand_says_where_each_partition_goes() -> None:
    decided = create(creatable("orders", assignments={1: [NODE], 0: [NODE]}))
    assert decided.records == given.topic("orders", 2, A)


@pytest.mark.parametrize(("assignments", "problem"), [
    ({0: []}, "The manual partition assignment includes an empty replica list."),
    ({0: [7]}, "The manual partition assignment includes broker 7, but no such broker is registered."),
    ({0: [1, 1]}, "The manual partition assignment includes the broker 1 more than once."),
    ({1: [1]}, "partitions should be a consecutive 0-based integer sequence"),
])  # fmt: skip
def test_an_impossible_assignment_is_refused(assignments: dict[int, list[int]], problem: str) -> None:
    assert refusal(creatable("orders", assignments=assignments)) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)


@pytest.mark.parametrize(("partitions", "factor", "what"), [(1, -1, "numPartitions"), (-1, 1, "replication factor")])
def test_an_assignment_and_a_count_exclude_each_other(partitions: int, factor: int, what: str) -> None:
    assert refusal(creatable("orders", partitions, factor, assignments={0: [1]})) == (
        ErrorCode.INVALID_REQUEST,
        f"A manual partition assignment was specified, but {what} was not set to -1.",
    )


@pytest.mark.parametrize(("configs", "problem"), [
    ({"no.such": "1"}, "Unknown topic config name: no.such"),
    ({"retention.ms": None}, "Null value not supported for topic configs: retention.ms"),
    ({"retention.ms": "x"}, "Invalid value x for configuration retention.ms: Not a number of type LONG"),
])  # fmt: skip
def test_configs_are_validated(configs: dict[str, str | None], problem: str) -> None:
    assert refusal(creatable("orders", configs=configs)) == (ErrorCode.INVALID_CONFIG, problem)


TOO_MANY = (ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
TOO_LARGE = (ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")


@pytest.mark.parametrize(("topics", "error"), [
    ([creatable("a", 10_001)], TOO_MANY),
    ([creatable("a", 5_000), creatable("b", 5_001)], TOO_MANY),
    ([creatable("a", 10_000), creatable("a b", 1)], TOO_MANY),
    ([creatable("a", 10_000)], TOO_LARGE),
    ([creatable("a", 9_999, configs={"retention.ms": "1"})], TOO_LARGE),
    ([creatable("a", 5_000), creatable("b", 4_999)], TOO_LARGE),
    ([creatable("a", 10_000), creatable("a b", -5)], TOO_LARGE),
    ([creatable("a", 10_000), creatable("b", 1), creatable("b", 1)], TOO_LARGE),
])  # fmt: skip
@pytest.mark.parametrize("validate_only", [False, True])
def test_a_request_for_too_much_is_refused_whole(
    topics: list[CreatableTopic], error: tuple[ErrorCode, str], validate_only: bool
) -> None:
    decided = create(*topics, validate_only=validate_only)
    assert not decided.records
    answers = [(result.name, (result.error_code, result.error_message)) for result in decided.answer.topics]
    assert answers == [(topic.name, error) for topic in topics]


@pytest.mark.parametrize("topics", [
    [creatable("a", 9_999)],
    [creatable("a", 9_998, configs={"retention.ms": "1"})],
    [creatable("a", 5_000), creatable("b", 4_998)],
])  # fmt: skip
def test_a_request_may_take_ten_thousand_records(topics: list[CreatableTopic]) -> None:
    assert len(create(*topics).records) == 10_000


def test_what_is_not_looked_at_does_not_count() -> None:
    twice, metadata = creatable("b", 6_000), creatable("__cluster_metadata", 6_000)
    decided = create(creatable("a", 6_000), twice, twice, metadata)
    assert len(decided.records) == 6_001
