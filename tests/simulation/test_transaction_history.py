"""Tests the checker itself, with hand-written histories, each with one anomaly or none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.transaction_history import (
    UNKNOWN_TIME_MS,
    History,
    Kind,
    Outcome,
    Reader,
    Seen,
    Transaction,
    Write,
)

ASKED_MS = 1_000


def history() -> History:
    """Returns a history in which one transaction of two records is committed, one is aborted, and one reader has read
    correctly."""
    made = History()
    made.transactions = [
        transaction("committed", Outcome.COMMITTED, Write(0, "a"), Write(1, "b"), Write(0, "c")),
        transaction("aborted", Outcome.ABORTED, Write(0, "x")),
    ]
    made.final = [seen(0, 0, "a"), seen(1, 0, "b"), seen(0, 1, "c")]
    reader = Reader("committed", committed=True)
    reader.seen = [read._replace(time_ms=ASKED_MS + 1) for read in made.final]
    made.readers = [reader]
    return made


def transaction(name: str, outcome: Outcome, *writes: Write) -> Transaction:
    made = Transaction(name)
    made.outcome, made.writes, made.commit_asked_ms = outcome, list(writes), ASKED_MS
    return made


def seen(partition: int, offset: int, value: str, time_ms: int = UNKNOWN_TIME_MS) -> Seen:
    return Seen(partition, offset, value, time_ms)


def kinds(checked: History) -> list[Kind]:
    return [anomaly.kind for anomaly in checked.anomalies()]


def test_nothing_is_found_where_nothing_is() -> None:
    assert kinds(history()) == []


def test_a_commit_whose_answer_was_lost_may_be_there_or_not() -> None:
    made = history()
    made.transactions.append(transaction("unknown", Outcome.UNKNOWN, Write(1, "u")))
    assert kinds(made) == []
    made.final.append(seen(1, 2, "u"))
    assert kinds(made) == []


def test_a_reader_of_everything_may_see_what_is_aborted_and_what_is_not_decided() -> None:
    made = history()
    made.readers[0].committed = False
    made.readers[0].seen = [seen(0, 0, "a", 5), seen(0, 1, "c", 6), seen(0, 2, "x", 7)]
    assert kinds(made) == []


def lose(made: History) -> None:
    made.transactions.append(transaction("all of it", Outcome.COMMITTED, Write(1, "gone")))


def repeat(made: History) -> None:
    made.final.append(seen(1, 1, "b"))


def see_what_was_aborted(made: History) -> None:
    made.readers[0].seen.append(seen(0, 2, "x", ASKED_MS + 1))


def see_what_is_not_decided(made: History) -> None:
    made.readers[0].seen[0] = seen(0, 0, "a", ASKED_MS - 1)


def go_back(made: History) -> None:
    made.readers[0].seen.append(seen(0, 0, "a", ASKED_MS + 2))


def skip(made: History) -> None:
    del made.readers[0].seen[0]


@pytest.mark.parametrize(
    ("plant", "kind"),
    [
        (lose, Kind.LOST_WRITE),
        (repeat, Kind.DUPLICATE),
        (see_what_was_aborted, Kind.G1A),
        (see_what_is_not_decided, Kind.G1B),
        (go_back, Kind.NON_MONOTONIC),
        (skip, Kind.POLL_SKIP),
    ],
)
def test_each_anomaly_is_found_and_no_other(plant: Callable[[History], None], kind: Kind) -> None:
    made = history()
    plant(made)
    assert kinds(made) == [kind]


def test_a_part_of_a_transaction_is_an_intermediate_read() -> None:
    made = history()
    made.transactions[0].outcome = Outcome.UNKNOWN
    del made.final[1], made.readers[0].seen[1]
    assert kinds(made) == [Kind.G1B]
