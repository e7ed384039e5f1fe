"""Tests the coordinators' errors, as each audience gets them."""

from __future__ import annotations

import pytest

from broker.shards import translations
from broker.shards.translations import Translation, seen_by_client, seen_by_producers, seen_by_share_member
from coordinator.engine.errors import Rejection
from protocol.errors import ErrorCode, KafkaError

TABLES = {name: table for name, table in vars(translations).items() if name.isupper()}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_what_an_audience_is_told_needs_no_translation(table: Translation) -> None:
    assert {code: table.get(code, code) for code in table.values()} == {code: code for code in table.values()}


def test_an_error_of_the_coordinators_log_is_one_of_the_coordinator() -> None:
    assert seen_by_client(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)).code is ErrorCode.NOT_COORDINATOR


def test_an_error_about_what_the_client_has_named_stays() -> None:
    refusal = Rejection(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert seen_by_client(refusal) is refusal


def test_a_code_that_is_in_no_table_stays() -> None:
    error = KafkaError(ErrorCode.ILLEGAL_GENERATION, "why")
    assert seen_by_client(error) is error


@pytest.mark.parametrize(
    ("version", "expected"), [(2, ErrorCode.PRODUCER_FENCED), (1, ErrorCode.INVALID_PRODUCER_EPOCH)]
)
def test_a_fenced_producer_is_told_as_it_understands_it(version: int, expected: ErrorCode) -> None:
    assert seen_by_producers(fenced_since=2)(KafkaError(ErrorCode.PRODUCER_FENCED), version).code is expected


def test_a_member_of_a_share_group_knows_a_few_errors_only() -> None:
    assert seen_by_share_member(KafkaError(ErrorCode.INVALID_REQUEST)).code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert seen_by_share_member(KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)).code is ErrorCode.GROUP_ID_NOT_FOUND
