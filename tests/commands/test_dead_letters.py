"""Tests how dead letters are read, and which records a redrive sends for them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from commands.errors import CommandError
from commands.shares.dead_letters import (
    FROM_LETTER,
    FROM_TOPIC,
    DeadLetter,
    chosen_letters,
    letter_of,
    marked,
    note_of,
    noted_offset,
    planned,
)
from protocol.records.record import Record
from protocol.types import TopicPartition

QUEUE = TopicPartition("dlq.jobs", 0)
SOURCE = TopicPartition("jobs", 3)
HEADERS: dict[str, bytes | None] = {
    "__dlq.errors.topic": b"jobs",
    "__dlq.errors.partition": b"3",
    "__dlq.errors.offset": b"42",
    "__dlq.errors.group": b"workers",
    "__dlq.errors.delivery.count": b"5",
    "__dlq.errors.message": b"Offset rejected by client.",
}


def record(offset: int = 7, headers: Mapping[str, bytes | None] = {}) -> Record:
    return Record(offset, 1_000, None, None, [*{**HEADERS, **headers}.items()])


def letter(offset: int = 7, headers: Mapping[str, bytes | None] = {}) -> DeadLetter:
    found = letter_of(QUEUE, record(offset, headers))
    assert found is not None
    return found


def test_a_letter_has_the_position_of_its_record_and_the_reason() -> None:
    found = letter()
    assert (found.name, found.source, found.source_offset) == ("0:7", SOURCE, 42)
    assert (found.group, found.deliveries, found.reason) == ("workers", 5, "Offset rejected by client.")


FORGED: dict[str, dict[str, bytes | None]] = {
    "no topic": {"__dlq.errors.topic": None},
    "no group": {"__dlq.errors.group": b""},
    "a partition below 0": {"__dlq.errors.partition": b"-1"},
    "a huge partition": {"__dlq.errors.partition": b"9" * 10},
    "an offset that is no number": {"__dlq.errors.offset": "٤٢".encode()},
    "a huge offset": {"__dlq.errors.offset": b"9" * 4_000},
    "no offset": {"__dlq.errors.offset": None},
}


@pytest.mark.parametrize("what", FORGED)
def test_other_records_of_the_queue_are_not_letters(what: str) -> None:
    assert letter_of(QUEUE, record(headers=FORGED[what])) is None
    assert letter_of(QUEUE, Record(0, 0, b"k", b"v", [])) is None


def test_headers_of_a_letter_may_have_any_bytes() -> None:
    found = letter(headers={"__dlq.errors.message": b"\xff\x00", "__dlq.errors.delivery.count": b"many"})
    assert (found.reason, found.deliveries) == ("\ufffd\x00", 0)


def test_a_redriven_record_keeps_its_headers_and_is_marked() -> None:
    sent = marked(letter(), b"k", b"v", [("trace", b"t1"), ("empty", None)])
    assert (sent.key, sent.value, sent.partition, sent.timestamp) == (b"k", b"v", 3, None)
    assert sent.headers == (
        ("trace", b"t1"),
        ("empty", None),
        ("__dlq.redriven.topic", b"dlq.jobs"),
        ("__dlq.redriven.partition", b"0"),
        ("__dlq.redriven.offset", b"7"),
        ("__dlq.redriven.group", b"workers"),
        ("__dlq.redriven.count", b"1"),
    )


def test_a_record_that_is_redriven_again_has_one_mark() -> None:
    first = marked(letter(), b"k", b"v", [("trace", b"t1")])
    second = marked(letter(9), first.key, first.value, first.headers)
    assert [name for name, _ in second.headers] == [name for name, _ in first.headers]
    assert dict(second.headers)["__dlq.redriven.count"] == b"2"
    assert dict(second.headers)["__dlq.redriven.offset"] == b"9"


def test_a_note_is_for_the_letter_of_its_group_only() -> None:
    sent = note_of(letter())
    note = Record(11, 0, sent.key, sent.value, sent.headers)
    assert sent.partition == QUEUE.partition
    assert (noted_offset(note, "workers"), noted_offset(note, "others")) == (7, None)
    assert letter_of(QUEUE, note) is None


def test_the_topic_s_record_is_sent_if_the_topic_still_has_it() -> None:
    here = {(SOURCE, 42): Record(42, 0, b"key", b"value", [("trace", b"t")])}
    plan = planned(letter(), here, has_partition=True)
    assert plan.record is not None
    assert (plan.taken_from, plan.record.value, plan.record.headers[0]) == (FROM_TOPIC, b"value", ("trace", b"t"))


def test_the_copy_is_sent_if_the_topic_no_longer_has_the_record() -> None:
    found = letter()._replace(value=b"copy")
    plan = planned(found, {}, has_partition=True)
    assert plan.record is not None
    assert (plan.taken_from, plan.record.value) == (FROM_LETTER, b"copy")


HOPELESS = {
    "gone": (letter(), True, "the letter has no copy"),
    "redriven": (letter()._replace(redriven_ms=5), True, "redriven already"),
    "no partition": (letter(), False, "no partition jobs-3"),
    "internal": (letter(headers={"__dlq.errors.topic": b"__consumer_offsets"}), True, "internal topic"),
}


@pytest.mark.parametrize("what", HOPELESS)
def test_a_letter_without_a_record_to_send_says_why(what: str) -> None:
    found, has_partition, error = HOPELESS[what]
    plan = planned(found, {}, has_partition=has_partition)
    assert plan.record is None
    assert error in plan.error


def test_exactly_the_named_letters_are_chosen() -> None:
    letters = [letter(9), letter(8), letter(7)]
    assert [one.offset for one in chosen_letters(letters, ["0:9", "0:7", "0:7"])] == [7, 9]
    with pytest.raises(CommandError, match="letter 0:70: the group has no such dead letter"):
        chosen_letters(letters, ["0:70"])
