"""Tests AlterConfigs and IncrementalAlterConfigs: either all changes of a resource are made, or none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import protocol.messages.alter_configs as legacy
import protocol.messages.incremental_alter_configs as incremental
from coordinator.cluster.brokers.registration import register_broker
from coordinator.cluster.configs.alter import AlterOperation, alter_configs, incremental_alter_configs
from coordinator.cluster.configs.resource import ConfigResource, ResourceType
from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.image import Image
from coordinator.cluster.record import MetadataRecord
from coordinator.cluster.topics.create import create_topics
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_topics import CreateTopicsRequest
from protocol.metadata_records.settings import ConfigRecord
from protocol.metadata_records.topics import ClearElrRecord
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import RULES, broker_config, topic_config
from tests.counted_work import lines_run

Result = tuple[int, str | None]
Change = tuple[int, str, str | None]
BROKER = ResourceType.BROKER
SET, DELETE, APPEND, SUBTRACT = AlterOperation
TOO_LONG = "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes."


class Item(str):
    """An item that counts its comparisons."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Item.comparisons += 1
        return super().__eq__(other)

    __hash__ = str.__hash__


class Splitting(str):
    """A value that splits into counting items."""

    def split(self, *arguments: Any, **options: Any) -> list[str]:
        return [Item(part) for part in super().split(*arguments, **options)]


def orders(**configs: str) -> Image:
    settings = [topic_config("orders", name.replace("_", "."), value) for name, value in configs.items()]
    return given.image(*given.topic("orders"), *settings)


def resource(name: str, *changes: Change, kind: int = ResourceType.TOPIC) -> incremental.AlterConfigsResource:
    return incremental.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            incremental.AlterableConfig(name=key, config_operation=operation, value=value)
            for operation, key, value in changes
        ],
    )


def alter(
    image: Image, *resources: incremental.AlterConfigsResource, validate_only: bool = False
) -> tuple[list[MetadataRecord], list[Result]]:
    request = incremental.IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    decided = given.decide(incremental_alter_configs, image, request, RULES)
    return list(decided.records), [(one.error_code, one.error_message) for one in decided.answer.responses]


def replace(image: Image, name: str, **configs: str) -> tuple[list[MetadataRecord], list[Result]]:
    alterable = [legacy.AlterableConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    whole = legacy.AlterConfigsResource(resource_type=ResourceType.TOPIC, resource_name=name, configs=alterable)
    decided = given.decide(
        alter_configs, image, legacy.AlterConfigsRequest(resources=[whole], validate_only=False), RULES
    )
    return list(decided.records), [(one.error_code, one.error_message) for one in decided.answer.responses]


OK = [(ErrorCode.NONE, None)]


def test_a_config_is_set() -> None:
    records, results = alter(orders(), resource("orders", (SET, "retention.ms", "5")))
    assert (records, results) == ([topic_config("orders", "retention.ms", "5")], OK)


def test_a_config_is_removed() -> None:
    records, _ = alter(orders(retention_ms="5"), resource("orders", (DELETE, "retention.ms", None)))
    assert records == [topic_config("orders", "retention.ms", None)]


def test_a_value_that_stays_needs_no_record() -> None:
    assert alter(orders(retention_ms="5"), resource("orders", (SET, "retention.ms", "5"))) == ([], OK)


def test_a_brokers_value_that_stays_is_recorded_again_so_that_files_it_names_are_read_again() -> None:
    image = given.image(broker_config("1", "ssl.keystore.location", "/k"))
    change = resource("1", (SET, "ssl.keystore.location", "/k"), kind=ResourceType.BROKER)
    assert alter(image, change) == ([broker_config("1", "ssl.keystore.location", "/k")], OK)


def test_a_list_is_appended_to_its_default_where_it_was_not_set() -> None:
    records, _ = alter(orders(), resource("orders", (APPEND, "cleanup.policy", "compact")))
    assert records == [topic_config("orders", "cleanup.policy", "delete,compact")]


def test_appending_what_is_there_and_subtracting_what_is_not_change_nothing() -> None:
    image = orders(cleanup_policy="compact")
    changes = (APPEND, "cleanup.policy", "compact"), (SUBTRACT, "follower.replication.throttled.replicas", "1:1")
    records, _ = alter(image, resource("orders", changes[0]))
    assert records == []


def test_a_list_is_subtracted_from() -> None:
    image = orders(cleanup_policy="compact,delete")
    records, _ = alter(image, resource("orders", (SUBTRACT, "cleanup.policy", "delete")))
    assert records == [topic_config("orders", "cleanup.policy", "compact")]


def test_only_lists_are_appended_to() -> None:
    _, results = alter(orders(), resource("orders", (APPEND, "retention.ms", "5")))
    assert results == [(ErrorCode.INVALID_CONFIG, "Can't APPEND to key retention.ms because its type is not LIST.")]


def test_a_broker_tells_in_its_words_that_an_option_is_no_list() -> None:
    rules = ConfigRules(1, lists={ResourceType.BROKER: {"log.retention.ms": None}})
    answers = []
    for operation, option in ((APPEND, "log.retention.ms"), (SUBTRACT, "log.retention.ms"), (APPEND, "odd")):
        change = resource("1", (operation, option, "5"), kind=ResourceType.BROKER)
        request = incremental.IncrementalAlterConfigsRequest(resources=[change], validate_only=False)
        (answer,) = given.decide(incremental_alter_configs, orders(), request, rules).answer.responses
        answers.append((answer.error_code, answer.error_message))
    assert answers == [
        (ErrorCode.INVALID_CONFIG, "Config value append is not allowed for config key: log.retention.ms"),
        (ErrorCode.INVALID_CONFIG, "Config value subtract is not allowed for config key: log.retention.ms"),
        (ErrorCode.INVALID_CONFIG, "Unknown config name: odd"),
    ]


def test_a_resource_changes_wholly_or_not_at_all() -> None:
    good, bad = (SET, "retention.ms", "5"), (SET, "no.such", "1")
    records, results = alter(orders(), resource("orders", good, bad))
    assert (records, results) == ([], [(ErrorCode.INVALID_CONFIG, "Unknown topic config name: no.such")])


def test_values_are_checked_together_with_those_that_are_there() -> None:
    image = orders(max_compaction_lag_ms="10")
    _, results = alter(image, resource("orders", (SET, "min.compaction.lag.ms", "20")))
    assert results[0][0] == ErrorCode.INVALID_CONFIG


def test_a_resource_that_fails_does_not_keep_another() -> None:
    good = resource("orders", (SET, "retention.ms", "5"))
    records, results = alter(orders(), resource("absent", (SET, "retention.ms", "5")), good)
    assert records == [topic_config("orders", "retention.ms", "5")]
    absent = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'absent' does not exist.")
    assert results == [absent, (ErrorCode.NONE, None)]


def test_a_validation_leaves_no_records() -> None:
    assert alter(orders(), resource("orders", (SET, "retention.ms", "5")), validate_only=True) == ([], OK)


def test_a_resource_named_twice_is_refused() -> None:
    twice = resource("orders", (SET, "retention.ms", "5"))
    refused = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    assert alter(orders(), twice, twice) == ([], [refused, refused])


def test_a_config_named_twice_is_refused() -> None:
    change = resource("orders", (SET, "retention.ms", "5"), (SET, "retention.ms", "6"))
    assert alter(orders(), change) == ([], [(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")])


def test_only_a_removal_is_without_value() -> None:
    change = resource("orders", (SET, "retention.ms", None))
    assert alter(orders(), change) == ([], [(ErrorCode.INVALID_REQUEST, "Null value not supported for : retention.ms")])


def test_an_unknown_operation_is_refused() -> None:
    change = resource("orders", (SET, "retention.ms", "5"))
    change.configs[0].config_operation = 9
    assert alter(orders(), change) == ([], [(ErrorCode.INVALID_REQUEST, "Unknown operations type 9")])


UNKNOWN: Change = (9, "retention.ms", "5")
NO_LIST: Change = (APPEND, "segment.ms", "5")


@pytest.mark.parametrize(("kind", "name", "changes", "code"), [
    (ResourceType.TOPIC, "orders", (UNKNOWN, NO_LIST), ErrorCode.INVALID_CONFIG),
    (ResourceType.CLIENT_METRICS, "", (UNKNOWN, NO_LIST), ErrorCode.INVALID_CONFIG),
    (ResourceType.BROKER, "", (NO_LIST, UNKNOWN), ErrorCode.INVALID_REQUEST),
    (ResourceType.BROKER, "1", (NO_LIST,), ErrorCode.INVALID_CONFIG),
])  # fmt: skip
def test_of_several_faults_the_one_that_kafka_finds_first_is_told(
    kind: int, name: str, changes: tuple[Change, ...], code: ErrorCode
) -> None:
    records, ((error_code, _),) = alter(orders(), resource(name, *changes, kind=kind))
    assert (records, error_code) == ([], code)


def test_a_broker_looks_at_its_configs_before_the_controller_does() -> None:
    def refuse(_name: str, _configs: Mapping[str, str]) -> None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "no number")

    rules = ConfigRules(1, checkers={ResourceType.BROKER: refuse})
    whole = legacy.AlterConfigsResource(
        resource_type=ResourceType.BROKER,
        resource_name="1",
        configs=[legacy.AlterableConfig(name="min.insync.replicas", value="y")],
    )
    decided = given.decide(
        alter_configs, orders(), legacy.AlterConfigsRequest(resources=[whole], validate_only=False), rules
    )
    (answer,) = decided.answer.responses
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, "no number")


@pytest.mark.parametrize(
    ("name", "asked_at", "code"),
    [
        ("2", None, ErrorCode.NONE),
        ("", None, ErrorCode.NONE),
        ("100", None, ErrorCode.INVALID_REQUEST),
        ("2", 2, ErrorCode.INVALID_REQUEST),
        ("", 2, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_controller_knows_no_options_but_its_own(name: str, asked_at: int | None, code: ErrorCode) -> None:
    def refuse(_name: str, _configs: Mapping[str, str]) -> None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "num.io.threads is an option of Apache Kafka's brokers")

    cluster = orders()
    second = given.registration(2, incarnation_id=b"second-inc------", log_dirs=[b"directory-two---"])
    given.apply(cluster, register_broker(cluster, second, given.RULES)[0])
    cluster.controller_id = 100
    change = resource(name, (SET, "num.io.threads", "2"), kind=ResourceType.BROKER)
    request = incremental.IncrementalAlterConfigsRequest(resources=[change], validate_only=False)
    rules = ConfigRules(100, checkers={ResourceType.BROKER: refuse})
    (answer,) = given.decide(incremental_alter_configs, cluster, request, rules, broker_id=asked_at).answer.responses
    assert answer.error_code == code


@pytest.mark.parametrize(("key", "value"), [("min.insync.replicas", "two"), ("log.retention.hours", "x")])
def test_a_controller_takes_nothing_for_all_brokers_that_it_could_not_read_for_a_topic(key: str, value: str) -> None:
    cluster = orders()
    cluster.controller_id = 100
    change = resource("", (SET, key, value), kind=ResourceType.BROKER)
    request = incremental.IncrementalAlterConfigsRequest(resources=[change], validate_only=False)
    (answer,) = given.decide(incremental_alter_configs, cluster, request, ConfigRules(100)).answer.responses
    assert answer.error_code == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(("kind", "name", "code", "message"), [
    (99, "x", ErrorCode.INVALID_REQUEST, "Unknown resource type 99"),
    (ResourceType.TOPIC, "", ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."),
    (ResourceType.BROKER, "x", ErrorCode.INVALID_REQUEST, "Node id must be an integer, but it is: x"),
    (ResourceType.BROKER, "-1", ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1, but received -1"),
    (ResourceType.BROKER, "7", ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1, but received 7"),
    (ResourceType.GROUP, "", ErrorCode.INVALID_REQUEST, "Default group resources are not allowed."),
])  # fmt: skip
def test_a_resource_that_cannot_be_altered_is_told_why(kind: int, name: str, code: ErrorCode, message: str) -> None:
    assert alter(orders(), resource(name, (SET, "a", "b"), kind=kind)) == ([], [(code, message)])


def test_a_controller_alters_any_broker_of_its_cluster() -> None:
    cluster = orders()
    second = given.registration(2, incarnation_id=b"second-inc------", log_dirs=[b"directory-two---"])
    given.apply(cluster, register_broker(cluster, second, given.RULES)[0])
    cluster.controller_id = 100
    change = resource("2", (SET, "num.io.threads", "2"), kind=ResourceType.BROKER)
    assert alter(cluster, change)[1] == OK
    unregistered = resource("7", (SET, "num.io.threads", "2"), kind=ResourceType.BROKER)
    assert alter(cluster, unregistered) == ([], [(ErrorCode.BROKER_ID_NOT_REGISTERED, "No broker with id 7 found.")])
    own = incremental.IncrementalAlterConfigsRequest(resources=[change], validate_only=False)
    (refused,) = given.decide(incremental_alter_configs, cluster, own, RULES, broker_id=1).answer.responses
    assert refused.error_message == "Unexpected broker id, expected 1, but received 2"


def test_groups_and_client_metrics_have_configs_before_they_are_there() -> None:
    change = resource("readers", (SET, "consumer.session.timeout.ms", "50000"), kind=ResourceType.GROUP)
    records, results = alter(given.image(), change)
    assert results == OK
    assert records == [
        ConfigRecord(resource_type=32, resource_name="readers", name="consumer.session.timeout.ms", value="50000")
    ]


def test_a_new_minimum_of_in_sync_replicas_clears_who_was_eligible_by_the_old_one() -> None:
    records, _ = alter(orders(), resource("orders", (SET, "min.insync.replicas", "2")))
    assert records == [topic_config("orders", "min.insync.replicas", "2"), ClearElrRecord(topic_name="orders")]
    records, _ = alter(orders(), resource("", (SET, "min.insync.replicas", "2"), kind=ResourceType.BROKER))
    assert records == [broker_config("", "min.insync.replicas", "2"), ClearElrRecord(topic_name="")]


@pytest.mark.parametrize(("broker", "operation"), [("1", SET), ("1", DELETE), ("", DELETE)])
def test_the_minimum_of_in_sync_replicas_stays_the_clusters(broker: str, operation: AlterOperation) -> None:
    change = resource(broker, (operation, "min.insync.replicas", "2"), kind=ResourceType.BROKER)
    image = given.image(broker_config("", "min.insync.replicas", "1"))
    records, results = alter(image, change)
    assert records == []
    assert "while ELR is enabled" in (results[0][1] or "")


def test_a_value_that_no_record_can_hold_is_refused() -> None:
    change = resource("1", (SET, "sasl.jaas.config", "x" * 32768), kind=ResourceType.BROKER)
    _, results = alter(given.image(), change)
    assert results[0][0] == ErrorCode.INVALID_CONFIG


def test_the_older_request_replaces_all_configs() -> None:
    image = orders(retention_ms="5", segment_ms="7")
    records, results = replace(image, "orders", retention_ms="6", retention_bytes="8")
    assert records == [
        topic_config("orders", "retention.ms", "6"),
        topic_config("orders", "retention.bytes", "8"),
        topic_config("orders", "segment.ms", None),
    ]
    assert results == OK


def test_the_older_request_removes_nothing_when_it_fails() -> None:
    records, results = replace(orders(retention_ms="5"), "orders", retention_bytes="x")
    assert records == []
    assert results[0][0] == ErrorCode.INVALID_CONFIG


def test_all_configs_of_a_logger_are_no_resource() -> None:
    of_logger = legacy.AlterConfigsResource(resource_type=ResourceType.BROKER_LOGGER, resource_name="1", configs=[])
    decided = given.decide(
        alter_configs, given.image(), legacy.AlterConfigsRequest(resources=[of_logger], validate_only=False), RULES
    )
    (answer,) = decided.answer.responses
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, "Unknown resource type 8")


@pytest.mark.parametrize("name", ["9" * 5_000, "+" + "9" * 5_000, "-" + "9" * 5_000])
def test_a_broker_s_id_of_thousands_of_digits_is_no_id(name: str) -> None:
    records, ((code, message),) = alter(orders(), resource(name, (SET, "log.retention.ms", "5"), kind=BROKER))
    assert (records, code) == ([], ErrorCode.INVALID_REQUEST)
    assert message == f"Node id must be an integer, but it is: {name}"
    with pytest.raises(KafkaError, match="Unable to parse broker name as a base 10 number"):
        RULES.check_name(ConfigResource(ResourceType.BROKER, name))


@pytest.mark.parametrize(("kind", "name", "value"), [
    (ResourceType.TOPIC, "retention.ms", "9" * 5_000),
    (ResourceType.BROKER, "log.retention.hours", "9" * 5_000),
])  # fmt: skip
def test_a_value_of_thousands_of_digits_is_no_number(kind: ResourceType, name: str, value: str) -> None:
    whom = "orders" if kind is ResourceType.TOPIC else ""
    _, ((code, message),) = alter(orders(), resource(whom, (SET, name, value), kind=kind))
    assert code == ErrorCode.INVALID_CONFIG
    assert message is not None
    assert "4300" not in message


@pytest.mark.parametrize(("kind", "name", "option", "operation"), [
    (ResourceType.TOPIC, "orders", "leader.replication.throttled.replicas", SET),
    (ResourceType.TOPIC, "orders", "leader.replication.throttled.replicas", APPEND),
    (ResourceType.TOPIC, "orders", "leader.replication.throttled.replicas", SUBTRACT),
    (ResourceType.BROKER, "1", "sasl.enabled.mechanisms", SET),
    (ResourceType.BROKER, "", "log.cleanup.policy", SET),
])  # fmt: skip
def test_a_value_is_too_long_before_its_items_are_looked_at(
    kind: ResourceType, name: str, option: str, operation: AlterOperation
) -> None:
    image, lines = orders(), []
    for count in (10_000, 20_000):
        value = ",".join(f"item-{number}" for number in range(count))
        change = resource(name, (operation, option, value), kind=kind)
        _, results = alter(image, change)
        lines.append(lines_run(lambda change=change: alter(image, change)))  # type: ignore[misc]
        ((code, message),) = results
        assert (code, message) == (ErrorCode.INVALID_CONFIG, TOO_LONG)
    assert lines[0] == lines[1]


def test_a_subtraction_of_twice_the_items_is_twice_the_work() -> None:
    """The work is counted in comparisons of an item."""
    comparisons = []
    for count in (1_000, 2_000):
        current = ",".join(f"0:{number}" for number in range(count))
        image = orders(leader_replication_throttled_replicas=current)
        value = Splitting(",".join(f"1:{number}" for number in range(count)))
        Item.comparisons = 0
        change = (SUBTRACT, "leader.replication.throttled.replicas", value)
        assert alter(image, resource("orders", change)) == ([], [(0, None)])
        comparisons.append(Item.comparisons)
    assert comparisons[1] <= 2 * comparisons[0] + 100


def test_a_new_topic_s_config_is_too_long_before_its_items_are_looked_at() -> None:
    value = ",".join(f"{number}:1" for number in range(10_000))
    request = CreateTopicsRequest(
        topics=[given.creatable("new", 1, 1, {"leader.replication.throttled.replicas": value})]
    )
    decided = given.decide(create_topics, given.image(), request, given.OPTIONS, RULES, given.ids(bytes(16)))
    (result,) = decided.answer.topics
    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_CONFIG, TOO_LONG)
