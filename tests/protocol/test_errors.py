"""Compares the error table with an independent table, and tests the texts of errors."""

from __future__ import annotations

import kafka.errors
import pytest

from protocol.errors import RETRIABLE, ErrorCode, InvalidRecords, KafkaError, ProtocolError

# kafka-python's names for these are of its own, or of older Kafkas.
RENAMED = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "UNKNOWN",
    ErrorCode.NONE: "NO_ERROR",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "NOT_LEADER_FOR_PARTITION",
    ErrorCode.MESSAGE_TOO_LARGE: "MESSAGE_SIZE_TOO_LARGE",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "INVALID_TOPIC",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "INVALID_REPLICATION_ASSIGNMENT",
}


def test_codes_have_no_gap() -> None:
    assert list(map(int, ErrorCode)) == list(range(-1, max(ErrorCode) + 1))


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_every_code_says_what_happened(code: ErrorCode) -> None:
    assert code.message
    assert not code.message.endswith(".")


def test_kafka_python_gives_the_same_codes_the_same_names() -> None:
    theirs = {error.errno: error.message for error in kafka.errors.kafka_errors.values()}
    assert len(theirs) > 120
    assert {code: theirs[code] for code in ErrorCode if code in theirs} == {
        code: RENAMED.get(code, code.name) for code in ErrorCode if code in theirs
    }


def test_kafka_python_retries_the_same_errors() -> None:
    theirs = {error.errno: error.retriable for error in kafka.errors.kafka_errors.values()}
    # It gives up on a corrupt message, where Kafka's own client tries again.
    differing = {code for code in ErrorCode if code in theirs and theirs[code] != code.retriable}
    assert differing == {ErrorCode.CORRUPT_MESSAGE}


def test_an_error_without_a_message_has_its_code_s() -> None:
    error = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert error.message == ErrorCode.NOT_LEADER_OR_FOLLOWER.message
    assert str(error).startswith("NOT_LEADER_OR_FOLLOWER: ")
    assert error.code in RETRIABLE


def test_invalid_records_name_the_records() -> None:
    error = InvalidRecords(ErrorCode.INVALID_RECORD, "two records have no key", [(0, "no key"), (3, None)])
    assert error.record_errors == [(0, "no key"), (3, None)]
    assert InvalidRecords(ErrorCode.INVALID_RECORD).record_errors == []


def test_a_protocol_error_tells_where_in_the_frame() -> None:
    assert str(ProtocolError("a string of -7 bytes", offset=14)) == "a string of -7 bytes (at byte 14)"
    assert str(ProtocolError("no frame")) == "no frame"
