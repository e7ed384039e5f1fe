"""Tests that the generated stream is realistic, and the same for the same seed."""

from __future__ import annotations

import itertools
import json
from collections import Counter

from pipeline.activity import Activity, ActivityEvent, events

SHAPE = Activity(records=5_000, seed=7, start_ms=1_000_000)


def made(shape: Activity = SHAPE) -> list[ActivityEvent]:
    return list(events(shape))


def test_a_seed_is_a_stream() -> None:
    assert made() == made()
    assert made() != made(Activity(records=5_000, seed=8, start_ms=1_000_000))


def test_there_are_as_many_as_were_asked_for_in_the_order_of_sending() -> None:
    stream = made()
    assert len(stream) == 5_000
    assert all(before.sent_ms <= after.sent_ms for before, after in itertools.pairwise(stream))
    assert all(event.at_ms <= event.sent_ms for event in stream)


def test_some_are_late_and_some_are_doubled() -> None:
    stream = made(Activity(records=5_000, seed=7, per_second=2.0))
    late = sum(event.sent_ms - event.at_ms > 60_000 for event in stream)
    doubled = len(stream) - len({event.id for event in stream})
    assert 20 < late < 200
    assert 5 < doubled < 60
    plain = made(Activity(records=1_000, late=0.0, doubled=0.0))
    assert len({event.id for event in plain}) == 1_000
    assert max(event.sent_ms - event.at_ms for event in plain) < 5_000


def test_users_and_pages_are_skewed() -> None:
    pages = Counter(event.page for event in made()).most_common()
    users = Counter(event.user for event in made()).most_common()
    assert pages[0][1] > 2 * pages[4][1]
    assert users[0][1] > 2 * users[len(users) // 2][1]
    assert len(users) > 100


def test_sessions_begin_with_a_page_view_and_are_of_one_user() -> None:
    stream = sorted(made(Activity(records=5_000, late=0.0)), key=lambda event: event.id)
    first: dict[str, ActivityEvent] = {}
    for event in stream:
        first.setdefault(event.session, event)
        assert first[event.session].user == event.user
    assert {event.kind for event in first.values()} == {"page_view"}
    assert {event.kind for event in stream} == {"page_view", "search", "sign_up"}


def test_a_value_is_json_of_about_200_bytes() -> None:
    sizes = [len(event.value()) for event in made()]
    assert 150 < sum(sizes) / len(sizes) < 250
    fields = json.loads(made()[0].value())
    assert fields["at"] == made()[0].at_ms
    assert set(fields) == {"id", "type", "user", "session", "at", "page", "query", "agent"}
