"""A website's activity stream, generated from a seed: page views, searches and sign-ups of users with sessions. Pure.

Users and pages follow Zipf's law; sessions arrive at random and pause between clicks. Some events are sent late, as
from a phone without network; some are sent twice, as by a client that missed an answer. The same Activity gives the
same events.
"""

from __future__ import annotations

import heapq
import itertools
import random
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

EVENTS_PER_SESSION = 6.0
THINK_TIME_MS = 25_000.0
"""Mean time between the clicks of a session, which is short compared with the 30 minutes after which a session ends."""
LATE_BY_MS = 8 * 60_000.0
TRANSIT_MS = 120.0
DOUBLED_AFTER_MS = 2_000.0

AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:139.0) Gecko/20100101 Firefox/139.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 14.5) Version/18.4 Safari/605.1.15",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/136.0 Safari/537.36",
    "Shop/7.2.1 (Linux; Android 15; Pixel 9) okhttp/4.12.0 Mobile/en-GB",
)
WORDS = ("lamp", "desk", "chair", "rug", "shelf", "oak", "linen", "brass", "small", "red", "outdoor", "vintage")

NEXT_KIND = {
    # after: (page view, search, sign-up), as the share of draws below it
    "page_view": (0.78, 0.97, 1.0),
    "search": (0.92, 1.0, 1.0),
    "sign_up": (0.90, 1.0, 1.0),
}
KINDS = ("page_view", "search", "sign_up")


@dataclass(frozen=True, slots=True)
class Activity:
    """The shape of a stream. `per_second` is the density of events in simulated time, not the rate of sending.

    `skew` is the exponent of Zipf's law for pages; the exponent for users is smaller.
    """

    records: int
    seed: int = 0
    start_ms: int = 0
    per_second: float = 200.0
    users: int = 20_000
    pages: int = 800
    skew: float = 1.1
    user_skew: float = 0.5
    late: float = 0.02
    doubled: float = 0.005


class ActivityEvent(NamedTuple):
    """One event of a user. `at_ms` is the time when it happened, `sent_ms` the later time when it was sent."""

    sent_ms: int
    id: str
    kind: str
    user: str
    session: str
    at_ms: int
    page: str
    query: str | None
    agent: str

    def value(self) -> bytes:
        """Returns the event as JSON. Its texts need no escaping."""
        query = "null" if self.query is None else f'"{self.query}"'
        return (
            f'{{"id":"{self.id}","type":"{self.kind}","user":"{self.user}","session":"{self.session}",'
            f'"at":{self.at_ms},"page":"{self.page}","query":{query},"agent":"{self.agent}"}}'
        ).encode()


class Zipf:
    """Draws 0 … count-1; the k-th has a weight of 1/k^skew."""

    def __init__(self, count: int, skew: float) -> None:
        self._below = list(itertools.accumulate(1 / rank**skew for rank in range(1, count + 1)))
        self._last = count - 1

    def draw(self, source: random.Random) -> int:
        return bisect(self._below, source.random() * self._below[-1], 0, self._last)


class Visit:
    """An active session, with its user's next event."""

    __slots__ = ("agent", "id", "kind", "user")

    def __init__(self, number: int, user: int, agent: str) -> None:
        self.id = f"s{number:07x}"
        self.user = f"u{user:06d}"
        self.agent = agent
        self.kind = "page_view"


def events(activity: Activity) -> Iterator[ActivityEvent]:
    """Yields the stream's records in the order in which they are sent; exactly `activity.records` of them."""
    return itertools.islice(_in_sent_order(_with_faults(activity)), activity.records)


def _visits(activity: Activity, source: random.Random) -> Iterator[tuple[int, Visit]]:
    """Yields (the time of an event, its session), in the order of time, without end."""
    users = Zipf(activity.users, activity.user_skew)
    gap_ms = 1000 * EVENTS_PER_SESSION / activity.per_second
    numbers = itertools.count()
    arrival = float(activity.start_ms)
    under_way: list[tuple[float, int, Visit]] = []
    while True:
        while not under_way or under_way[0][0] >= arrival:
            number = next(numbers)
            heapq.heappush(under_way, (arrival, number, Visit(number, users.draw(source), source.choice(AGENTS))))
            arrival += source.expovariate(1 / gap_ms)
        at, number, visit = heapq.heappop(under_way)
        yield int(at), visit
        if source.random() > 1 / EVENTS_PER_SESSION:
            visit.kind = KINDS[bisect(NEXT_KIND[visit.kind], source.random())]
            heapq.heappush(under_way, (at + source.expovariate(1 / THINK_TIME_MS), number, visit))


def _with_faults(activity: Activity) -> Iterator[tuple[int, ActivityEvent]]:
    """Yields (the earliest time at which later events may be sent, event), with late and duplicate events."""
    source = random.Random(activity.seed)
    pages = Zipf(activity.pages, activity.skew)
    for number, (at_ms, visit) in enumerate(_visits(activity, source)):
        delay = LATE_BY_MS if source.random() < activity.late else TRANSIT_MS
        sent_ms = at_ms + int(source.expovariate(1 / delay))
        query = f"{source.choice(WORDS)} {source.choice(WORDS)}" if visit.kind == "search" else None
        page = "/search" if query else "/welcome" if visit.kind == "sign_up" else f"/item/{pages.draw(source)}"
        name = f"{activity.seed:x}-{number:08x}"
        event = ActivityEvent(sent_ms, name, visit.kind, visit.user, visit.id, at_ms, page, query, visit.agent)
        yield at_ms, event
        if source.random() < activity.doubled:
            yield at_ms, event._replace(sent_ms=sent_ms + int(source.expovariate(1 / DOUBLED_AFTER_MS)))


def _in_sent_order(given: Iterator[tuple[int, ActivityEvent]]) -> Iterator[ActivityEvent]:
    """Yields events in the order of sending. No later event is sent before its time, so all events sent before that
    time can be yielded."""
    waiting: list[tuple[int, int, ActivityEvent]] = []
    for number, (at_ms, event) in enumerate(given):
        while waiting and waiting[0][0] < at_ms:
            yield heapq.heappop(waiting)[2]
        heapq.heappush(waiting, (event.sent_ms, number, event))
