"""Tests AlterClientQuotas and DescribeClientQuotas."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from coordinator.cluster.image import Image
from coordinator.cluster.security import client_quotas
from coordinator.cluster.security.client_quotas import (
    EntityFilter,
    alter_client_quotas,
    host_names,
    rejected_alteration,
)
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from tests.coordinator.cluster import given

ALICE: dict[str, str | None] = {"user": "alice"}
EXACT, DEFAULT, SPECIFIED = range(3)


def entry(entity: Mapping[str, str | None], *ops: tuple[str, float | None]) -> EntryData:
    """Returns quotas to set, or to remove if the value is None."""
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[OpData(key=key, value=0.0 if value is None else value, remove=value is None) for key, value in ops],
    )


def alter(image: Image, *entries: EntryData, validate_only: bool = False) -> list[tuple[int, str | None]]:
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    decided = given.decide(alter_client_quotas, image, request, {"127.0.0.1", "localhost"})
    given.apply(image, decided.records)
    return [(one.error_code, one.error_message) for one in decided.answer.entries]


def described(
    image: Image, *components: tuple[str, int, str | None], strict: bool = False
) -> list[tuple[dict[str, str | None], dict[str, float]]]:
    request = DescribeClientQuotasRequest(
        components=[ComponentData(entity_type=kind, match_type=match, match=name) for kind, match, name in components],
        strict=strict,
    )
    matches = EntityFilter(request).matches
    entries = [client_quotas.described(*quota) for quota in image.quotas.items() if matches(quota[0])]
    return [
        ({part.entity_type: part.entity_name for part in one.entity}, {value.key: value.value for value in one.values})
        for one in entries
    ]


def test_quotas_are_set_changed_and_removed() -> None:
    image = given.image()
    assert alter(image, entry(ALICE, ("producer_byte_rate", 1000), ("consumer_byte_rate", 2000))) == [(0, None)]
    assert described(image) == [(ALICE, {"producer_byte_rate": 1000, "consumer_byte_rate": 2000})]
    assert alter(image, entry(ALICE, ("producer_byte_rate", 5), ("consumer_byte_rate", None))) == [(0, None)]
    assert described(image) == [(ALICE, {"producer_byte_rate": 5})]
    assert alter(image, entry(ALICE, ("producer_byte_rate", None))) == [(0, None)]
    assert described(image) == []


def test_what_does_not_change_is_not_written() -> None:
    image = given.image()
    alter(image, entry(ALICE, ("request_percentage", 12.5)))
    again = AlterClientQuotasRequest(
        entries=[entry(ALICE, ("request_percentage", 12.5), ("consumer_byte_rate", None))], validate_only=False
    )
    assert not given.decide(alter_client_quotas, image, again, ()).records


def test_what_is_validated_only_is_not_written() -> None:
    image = given.image()
    assert alter(image, entry(ALICE, ("request_percentage", 1)), validate_only=True) == [(0, None)]
    assert described(image) == []


@pytest.mark.parametrize(
    ("entity", "key", "value", "message"),
    [
        ({}, "producer_byte_rate", 1, "Invalid empty client quota entity"),
        ({"group": "g"}, "producer_byte_rate", 1, "Unhandled client quota entity type: group"),
        ({"user": ""}, "producer_byte_rate", 1, "Empty user not supported"),
        (
            {"ip": "127.0.0.1", "user": "a"},
            "connection_creation_rate",
            1,
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
        ({"ip": "nowhere"}, "connection_creation_rate", 1, "nowhere is not a valid IP or resolvable host."),
        (ALICE, "connection_creation_rate", 1, "Invalid configuration key connection_creation_rate"),
        ({"ip": None}, "producer_byte_rate", 1, "Invalid configuration key producer_byte_rate"),
        (ALICE, "producer_byte_rate", 0, "Quota producer_byte_rate must be greater than 0"),
        (ALICE, "producer_byte_rate", 1.5, "producer_byte_rate cannot be a fractional value."),
        (ALICE, "producer_byte_rate", 1e19, "Proposed value for producer_byte_rate is too large for a LONG."),
        (
            {"ip": None},
            "connection_creation_rate",
            2.0**31,
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
    ],
)
def test_an_entry_that_makes_no_sense_is_refused(
    entity: dict[str, str | None], key: str, value: float, message: str
) -> None:
    image = given.image()
    assert alter(image, entry(entity, (key, value))) == [(ErrorCode.INVALID_REQUEST, message)]
    assert not image.quotas


def test_an_entity_named_twice_is_told_once() -> None:
    image = given.image()
    message = "Ignoring duplicate entity ClientQuotaEntity(entries={client-id=null, user=alice})"
    both: dict[str, str | None] = {"user": "alice", "client-id": None}
    twice = (entry(both, ("request_percentage", 1)), entry(both, ("request_percentage", 2)))
    assert alter(image, *twice) == [(ErrorCode.INVALID_REQUEST, message)]
    assert described(image) == [(both, {"request_percentage": 1})]


def test_filters_match_names_defaults_and_whatever_is_specified() -> None:
    image = given.image()
    both: dict[str, str | None] = {"user": "alice", "client-id": "c"}
    default: dict[str, str | None] = {"user": None}
    for entity in (ALICE, both, default):
        alter(image, entry(entity, ("request_percentage", 1)))
    assert [one for one, _ in described(image, ("user", EXACT, "alice"))] == [ALICE, both]
    assert [one for one, _ in described(image, ("user", EXACT, "alice"), strict=True)] == [ALICE]
    assert [one for one, _ in described(image, ("user", DEFAULT, None))] == [default]
    assert [one for one, _ in described(image, ("user", SPECIFIED, None), strict=True)] == [ALICE, default]
    assert described(image, ("client-id", SPECIFIED, None)) == [(both, {"request_percentage": 1})]


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("", EXACT, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", DEFAULT, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", SPECIFIED, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", 3, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, "a"), ("user", EXACT, "b")], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, "a"), ("ip", EXACT, "b")], ErrorCode.INVALID_REQUEST),
        ([("group", EXACT, "a")], ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(
    components: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    with pytest.raises(KafkaError) as refused:
        described(given.image(), *components)
    assert refused.value.code is code


def test_addresses_are_those_that_have_to_be_looked_up() -> None:
    request = AlterClientQuotasRequest(
        entries=[entry({"ip": "a"}), entry({"ip": None}), entry(ALICE)], validate_only=False
    )
    assert host_names(request) == {"a"}


def test_a_request_that_is_refused_is_refused_by_entry() -> None:
    request = AlterClientQuotasRequest(entries=[entry(ALICE), entry({"ip": None})], validate_only=False)
    refused = rejected_alteration(request, KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    assert [one.error_code for one in refused.entries] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2
