"""Live tails: the new records of partitions, which are read, filtered and rendered once for all tabs that show them."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple

from client.clock import done_by, pause
from commands.records.positions import END, START, Offsets, Position, PositionKind, resolve
from console.filters import RecordFilter
from console.reading import RecordOpener
from console.records import ShownRecord, row_of
from console.rendering import Templates, data_lines, event
from console.scanning import Ranges, RecordQuery, RecordScan, new_reader
from console.watching import UNREADABLE, WatchedCluster, reason_of
from protocol.records.batch import TimestampType
from protocol.records.record import Record
from protocol.types import TopicPartition

LIVE_MS: Final = 300
"""Least pause of a feed between two turns, and of a tab that catches up between two updates."""

TAB_MS: Final = 25
"""Time by which each open tab makes the pauses of the feeds longer: all tabs together get at most 40 updates a second
until MAX_PAUSE_MS limits the pauses. The tabs of a feed get theirs at once, which delays everything else on the machine
less often than updates that are spread over the time."""

TURN_MS: Final = 100
"""Time for which a feed that is behind reads in one turn."""

SLOWDOWN: Final = 4
"""A feed pauses this many times as long as its turn took, for each feed and each tab that catches up: together they
read at most a fifth of the time, unless MAX_PAUSE_MS limits the pauses."""

MAX_PAUSE_MS: Final = 5000
"""Longest of these pauses. A turn can also be long because a broker doesn't answer."""

SILENT_MS: Final = 10_000
"""Time without an answer after which a leader is named as a fault. It is longer than a turn and its pause."""

FAULT_MS: Final = 1000
"""Pause of a feed, or of a tab that catches up, after an error."""

EVERY_MS: Final = 10_000
"""Time after which a tab without new records gets its position again."""

LIVE_RECORDS: Final = 50
"""Records of one update. If more are written in the time between two updates, the newest are shown."""

MAX_BEHIND: Final = 20_000
"""Offsets by which a feed may be behind the ends of its partitions. Further behind, it goes on shortly before them."""

MAX_MARKED: Final = 500
"""Partitions of a tail whose updates carry its position: more numbers are too long for a header."""

ID_DIGITS: Final = 8
"""Hexadecimal digits of the topic's id in a mark."""

MAX_FAULTS: Final = 5
"""Partitions whose faults are shown."""


class FeedKey(NamedTuple):
    """Tabs with the same key share a feed. Each login with a password has a cluster of its own, so that no tab gets
    what another user may read."""

    cluster: WatchedCluster
    topic_id: bytes
    places: tuple[TopicPartition, ...]
    isolation: int


class TailUpdate(NamedTuple):
    """The matches that a tab shows next."""

    rows: Sequence[TailRow]
    """The newest first."""
    missed: int = 0
    """Matches before the rows that are not shown."""
    unread: int = 0
    """Offsets before the rows that were not read."""

    def __bool__(self) -> bool:
        return any(self)


class TailRow:
    """A match, and its row in the table, which is rendered when the first tab needs it."""

    def __init__(self, record: ShownRecord) -> None:
        self.place, self.offset = record.place, record.record.offset
        self._record: ShownRecord | None = record
        self._text = ""

    def text(self, templates: Templates, decode: str) -> str:
        """Returns the row as lines of an event."""
        if self._record is not None:
            self._text = data_lines(templates.render("records_rows.html", {"records": [row_of(self._record, decode)]}))
            self._record = None
        return self._text


class Tail:
    """The newest matches of a feed's records, for all tabs with the same filter and format. Nothing waits for a slow
    tab: when it is ready, it gets what is new, and the number of matches that it has missed."""

    def __init__(self, scan: RecordScan, decode: str, templates: Templates) -> None:
        self.tabs = 0
        self.count = 0
        """Number of matches so far."""
        self.at: Mapping[TopicPartition, int] = {}
        """The offsets up to which the matches are here; empty until the feed has found positions."""
        self.renewed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._scan = scan
        self._decode = decode
        self._templates = templates
        self._rows = deque[TailRow](maxlen=LIVE_RECORDS)
        self._found = list[ShownRecord]()
        self._found_count = 0
        self._shared = (TailUpdate(()), "", "")
        """The last update, its mark, and its event, which most tabs get alike."""

    async def add(self, place: TopicPartition, records: Sequence[tuple[Record, TimestampType]]) -> None:
        """Filters the records of an answer."""
        matches = await self._scan.matching(place, records)
        self._found = heapq.nlargest(LIVE_RECORDS, (*self._found, *matches), self._scan.age)
        self._found_count += len(matches)

    def publish(self, at: Mapping[TopicPartition, int]) -> None:
        """Gives the tabs the matches of a turn, up to the offsets `at`."""
        is_news = bool(self._found) or not self.at
        self._rows.extend(TailRow(record) for record in reversed(self._found))
        self.count += self._found_count
        self._found, self._found_count = [], 0
        self.at = at
        if is_news:
            self.wake()

    def wake(self) -> None:
        """Wakes the tabs."""
        waiting, self.renewed = self.renewed, asyncio.get_running_loop().create_future()
        waiting.set_result(None)

    def since(self, count: int) -> TailUpdate:
        """Returns the matches after the first `count`."""
        new = self.count - count
        rows = list(self._rows)[max(len(self._rows) - new, 0) :]
        return TailUpdate(rows[::-1], new - len(rows))

    def event(self, update: TailUpdate, mark: str) -> str:
        """Returns the event with an update, after which a tab can go on at `mark`."""
        if self._shared[:2] != (update, mark):
            rows = "".join(row.text(self._templates, self._decode) for row in update.rows)
            if update.missed or update.unread:
                rows += data_lines(self._templates.render("records_gap.html", update._asdict()))
            self._shared = (update, mark, f"{mark_line(mark)}event: records\n{rows}\n")
        return self._shared[2]

    def state(self, fault: str) -> str:
        """Returns the event that tells a tab if records can be read."""
        return event("state", self._templates.render("records_state.html", {"fault": fault}))


class Feed:
    """Reads the new records of some partitions, from now on, for all tabs of a login that show these partitions live.

    After an error it goes on at its position, and if the topic was created again, at the start. If more is written than
    it can read, it leaves records out, and counts them."""

    def __init__(self, key: FeedKey, pace: Callable[[int], int]) -> None:
        """`pace` returns the pause after a turn that took the given milliseconds."""
        self.tails: dict[tuple[RecordFilter, str], Tail] = {}
        self._fault = ""
        self._heard_ms: dict[TopicPartition, int] = {}
        """When each partition's leader answered last."""
        self.starts: Offsets = {}
        """The position at which the feed began to read each partition."""
        self.unread = 0
        """Number of offsets that were left out."""
        self.mark = ""
        """The positions as text, from which a tab goes on when it connects again."""
        self.clock = key.cluster.clock
        self.places = key.places
        self.topic_id = key.topic_id
        """Another one than in the key once the topic was created again."""
        self._cluster = key.cluster.client
        self._isolation = key.isolation
        self._pace = pace
        self._turned_ms = self.clock.monotonic_ms()
        """When the last turn ended."""
        self._reader = new_reader(self._cluster, key.isolation)
        self._errors: Mapping[TopicPartition, str] = {}
        self._start = END
        """Where partitions without a position begin."""
        self.task = asyncio.ensure_future(self._run())
        self.task.add_done_callback(lambda _: self._wake())

    async def _run(self) -> None:
        clock = self.clock
        try:
            while True:
                began_ms = clock.monotonic_ms()
                try:
                    await self._read()
                    fault = self._lost()
                except UNREADABLE as error:
                    self._reader.leaders.clear()  # perhaps the partitions have moved
                    fault = reason_of(error)
                before, self._fault, self._turned_ms = self.fault, fault, clock.monotonic_ms()
                if fault != before:
                    self._wake()
                pause_ms = self._pace(clock.monotonic_ms() - began_ms)
                await self._cluster.pause(max(pause_ms, FAULT_MS) if fault else pause_ms)
        finally:
            await self._reader.close()

    async def _read(self) -> None:
        """Reads to the ends of the partitions, or for TURN_MS. Raises the errors of UNREADABLE."""
        await self._find_start()
        reader, clock, tails = self._reader, self.clock, list(self.tails.values())
        until_ms = clock.monotonic_ms() + TURN_MS
        try:
            is_over = False
            while not is_over:
                is_over = True
                async with aclosing(reader.poll()) as answers:
                    async for place, records, _ in answers:
                        if self._is_new_topic():
                            break
                        self._heard_ms[place] = clock.monotonic_ms()
                        for tail in tails:
                            await tail.add(place, records)
                        is_over = is_over and not records
                if self._is_new_topic():
                    await self._begin_again()
                    return
                is_over = is_over or clock.monotonic_ms() >= until_ms or not self._behind()
            if self._behind() > MAX_BEHIND:
                before = sum(reader.positions.values())
                newest = {place: reader.ends.get(place, 0) - LIVE_RECORDS for place in self.places}
                await self._go_to({place: max(at, newest[place]) for place, at in reader.positions.items()})
                self.unread += sum(reader.positions.values()) - before
                self._wake()
        finally:
            self._publish()

    async def _find_start(self) -> None:
        """Finds the positions of partitions that have none: their ends, or if their leader was away until now, their
        first records since the feed began, or the starts of a topic that was created again."""
        missing = [place for place in self.places if place not in self._reader.positions]
        if missing:
            start = self._start
            if start is END:
                self._start = Position(PositionKind.TIME, self.clock.now_ms())
            found = await resolve(self._cluster, dict.fromkeys(missing, start), self._isolation)
            self._reader.positions |= found.offsets
            self.starts |= found.offsets
            self._heard_ms |= dict.fromkeys(found.offsets, self.clock.monotonic_ms())
            self._errors = found.errors

    async def _go_to(self, positions: Offsets) -> None:
        await self._reader.close()  # the answers to come are of the positions before
        self._reader.positions |= positions
        self._reader.ends.clear()

    def _is_new_topic(self) -> bool:
        """True if the topic was created again."""
        return self._read_id() != self.topic_id

    def _read_id(self) -> bytes:
        return self._reader.topic_ids.get(self.places[0].topic, self.topic_id)

    async def _begin_again(self) -> None:
        """Goes on at the start of the new topic. Partitions that it lacks are named as faults."""
        self.topic_id, self._start = self._read_id(), START
        await self._reader.close()
        self._reader = new_reader(self._cluster, self._isolation)

    def _behind(self) -> int:
        """Returns the number of offsets between the positions and the ends of the partitions."""
        ends = self._reader.ends
        return sum(max(ends.get(place, at) - at, 0) for place, at in self._reader.positions.items())

    @property
    def fault(self) -> str:
        """Why records can't be read at the moment, in words for the user; empty if they can."""
        if self._fault or self.clock.monotonic_ms() - self._turned_ms < SILENT_MS:
            return self._fault
        return f"{self.places[0].topic}: the brokers don't answer"

    def _lost(self) -> str:
        """Returns why some partitions can't be read."""
        reader, silent_ms = self._reader, self.clock.monotonic_ms() - SILENT_MS
        errors = [f"{place}: {error}" for place, error in self._errors.items()]
        for place in reader.positions:
            if reader.leaders.get(place) == -1:
                errors.append(f"{place} has no leader")
            elif self._heard_ms[place] <= silent_ms:
                errors.append(f"{place}: its leader doesn't answer")
        return "; ".join(errors[:MAX_FAULTS] + (["…"] if len(errors) > MAX_FAULTS else []))

    @property
    def positions(self) -> Offsets:
        """The next offset of each partition, without those whose leader was away until now."""
        return dict(self._reader.positions)

    def _publish(self) -> None:
        at = self.positions
        self.mark = mark_of(self.topic_id, self.places, at)
        for tail in self.tails.values():
            tail.publish(at)

    def _wake(self) -> None:
        for tail in self.tails.values():
            tail.wake()


class TailStart(NamedTuple):
    """Where a tab's tail begins."""

    topic_id: bytes
    offsets: Offsets
    most_behind: int | None = None
    """Offsets of each partition that it catches up at most; None for all."""


class LiveTab:
    """A tab's place in a tail. It catches up by itself from its own positions to the feed's, and from then on gets what
    the feed has read."""

    def __init__(self, feed: Feed, tail: Tail, scan: RecordScan, start: TailStart, pace: Callable[[int], int]) -> None:
        """`pace` returns the pause after a part that took the given milliseconds to read."""
        self._feed = feed
        self._tail = tail
        self._scan = scan
        self._pace = pace
        self._at = feed.positions | start.offsets
        """Its own positions; the feed's for partitions whose leader was away when the tab was opened. Once it has
        caught up, matches before them are left out until the feed has passed them."""
        self._rounds: Sequence[int | None] = (start.most_behind, MAX_BEHIND, MAX_BEHIND, 0)
        """The offsets of each partition by which it may be behind in each round of catching up; None for any number.
        The feed goes on meanwhile, and perhaps faster."""
        self.is_behind = True
        self._topic_id = feed.topic_id
        self._seen = 0
        """Number of the tail's matches that it has had."""
        self._unread = 0
        """Number of offsets that the feed had left out at the last update."""
        self._fault = ""
        """The error of catching up; empty if there is none."""

    async def events(self) -> AsyncGenerator[str, None]:
        """Yields server-sent events."""
        feed, tail, clock, shown_fault = self._feed, self._tail, self._feed.clock, ""
        yield mark_event(self._mark())
        while True:
            renewed = tail.renewed
            if feed.task.done():
                feed.task.result()
            async with aclosing(self._catch_up()) as updates:
                began_ms = clock.monotonic_ms()
                async for update in updates:
                    yield tail.event(update, self._mark()) if update else mark_event(self._mark())
                    await pause(clock, self._pace(clock.monotonic_ms() - began_ms))
                    began_ms = clock.monotonic_ms()
            if (fault := self._fault or feed.fault) != shown_fault:
                shown_fault = fault
                yield tail.state(fault)
            if self._has_news():
                if update := self._news():
                    yield tail.event(update, self._mark())
            elif not await done_by(clock, clock.monotonic_ms() + (FAULT_MS if self._fault else EVERY_MS), renewed):
                yield mark_event(self._mark())

    def _mark(self) -> str:
        if not self._at:
            return self._feed.mark
        there = {} if self.is_behind else self._tail.at
        at = {place: max(at, there.get(place, at)) for place, at in self._at.items()}
        return mark_of(self._topic_id, self._feed.places, at)

    def _follow_topic(self) -> None:
        """Goes to the start of a topic that was created again."""
        if self._topic_id != self._feed.topic_id:
            self._topic_id = self._feed.topic_id
            self._at = dict.fromkeys(self._at, 0) if self.is_behind else {}

    async def _catch_up(self) -> AsyncGenerator[TailUpdate, None]:
        """Yields the matches between its positions and the feed's. Ends when it has caught up, after an error, or while
        the feed has no positions."""
        self._fault = ""
        self._follow_topic()
        while self.is_behind and (there := self._tail.at):
            self._at = {place: self._feed.starts.get(place, at) for place, at in there.items()} | self._at
            most = self._rounds[0]
            unread = 0 if most is None else self._go_nearer(there, most)
            ranges = self._ranges(there)
            if not ranges:
                self.is_behind = False
                self._seen, self._unread = self._tail.count, self._feed.unread
            if unread:
                yield TailUpdate((), unread=unread)
            try:
                async with aclosing(self._between(ranges)) as updates:
                    async for update in updates:
                        yield update
            except UNREADABLE as error:
                self._fault = reason_of(error)
                return
            self._rounds = self._rounds[1:] or self._rounds
            self._follow_topic()

    def _ranges(self, there: Mapping[TopicPartition, int]) -> Ranges:
        return {place: (at, there[place]) for place, at in self._at.items() if at < there.get(place, at)}

    def _go_nearer(self, there: Mapping[TopicPartition, int], most: int) -> int:
        """Goes on at most `most` offsets before other positions. Returns the number of offsets that this leaves out."""
        before = sum(self._at.values())
        self._at |= {place: max(low, high - most) for place, (low, high) in self._ranges(there).items()}
        return sum(self._at.values()) - before

    async def _between(self, ranges: Ranges) -> AsyncGenerator[TailUpdate, None]:
        """Yields the matches within ranges of offsets, an update every LIVE_MS. Raises the errors of UNREADABLE."""
        clock, found, count = self._feed.clock, list[ShownRecord](), 0
        told_ms = clock.monotonic_ms()
        async with aclosing(self._scan.window(ranges)) as answers:
            async for matches in answers:
                found, count = heapq.nlargest(LIVE_RECORDS, (*found, *matches), self._scan.age), count + len(matches)
                if self._topic_id != self._feed.topic_id:
                    return
                if clock.monotonic_ms() - told_ms >= LIVE_MS:
                    self._at |= {place: min(at, ranges[place][1]) for place, at in self._scan.at.items()}
                    yield TailUpdate([TailRow(match) for match in found], count - len(found))
                    found, count, told_ms = [], 0, clock.monotonic_ms()
        self._at |= {place: high for place, (_, high) in ranges.items()}
        if found:
            yield TailUpdate([TailRow(match) for match in found], count - len(found))

    def _has_news(self) -> bool:
        is_behind_feed = self._seen != self._tail.count or self._unread != self._feed.unread
        return is_behind_feed and not self.is_behind

    def _news(self) -> TailUpdate:
        """Returns the matches since the last update."""
        self._follow_topic()
        rows, missed, _ = self._tail.since(self._seen)
        self._seen = self._tail.count
        unread, self._unread = self._feed.unread - self._unread, self._feed.unread
        if self._at:
            there = self._tail.at
            rows = [row for row in rows if row.offset >= self._at.get(row.place, 0)]
            passed = sum(max(there.get(place, at) - at, 0) for place, at in self._at.items())
            missed = min(missed, max(passed - len(rows), 0))
            unread = min(unread, max(passed - len(rows) - missed, 0))
            is_passed = all(there.get(place, -1) >= at for place, at in self._at.items())
            self._at = {} if is_passed else {place: max(at, there.get(place, at)) for place, at in self._at.items()}
        return TailUpdate(rows, missed, unread)


class Tails:
    """The live tails of all tabs. Tabs of a login that show the same partitions share a feed, which fetches the new
    records once; with the same filter and format they share a tail, which filters, decodes and renders them once."""

    def __init__(self, templates: Templates, opener: RecordOpener) -> None:
        self._templates = templates
        self._opener = opener
        self._feeds: dict[FeedKey, Feed] = {}
        self._tabs = set[LiveTab]()

    async def follow(
        self, cluster: WatchedCluster, question: RecordQuery, start: TailStart
    ) -> AsyncGenerator[str, None]:
        """Yields the events of a tab, until it is closed. The feed stops with its last tab."""
        key = FeedKey(cluster, start.topic_id, tuple(question.places), question.isolation)
        name = (question.filter, question.decode)
        if key not in self._feeds:
            self._feeds[key] = Feed(key, self._turn_pause_ms)
        feed = self._feeds[key]
        if name not in feed.tails:
            scan = RecordScan(cluster.client, question, self._opener)
            feed.tails[name] = Tail(scan, question.decode, self._templates)
        tail = feed.tails[name]
        tail.tabs += 1
        tab = LiveTab(feed, tail, RecordScan(cluster.client, question, self._opener), start, self._pause_ms)
        self._tabs.add(tab)
        try:
            async with aclosing(tab.events()) as events:
                async for text in events:
                    yield text
        finally:
            self._tabs.discard(tab)
            tail.tabs -= 1
            if not tail.tabs:
                del feed.tails[name]
            if self._feeds.get(key) is feed and (not feed.tails or feed.task.done()):
                del self._feeds[key]
                feed.task.cancel()

    def _turn_pause_ms(self, took_ms: int) -> int:
        """Returns the pause of a feed after a turn."""
        return min(max(self._pause_ms(took_ms), TAB_MS * len(self._tabs)), MAX_PAUSE_MS)

    def _pause_ms(self, took_ms: int) -> int:
        """Returns the pause of a tab that catches up, after a part."""
        readers = len(self._feeds) + sum(tab.is_behind for tab in self._tabs)
        return min(max(LIVE_MS, took_ms * SLOWDOWN * readers), MAX_PAUSE_MS)


def mark_of(topic_id: bytes, places: Sequence[TopicPartition], at: Mapping[TopicPartition, int]) -> str:
    """Returns the beginning of the topic's id and positions as text, "" if there are too many or some are unknown."""
    if len(places) > MAX_MARKED or not all(place in at for place in places):
        return ""
    return ",".join([topic_mark(topic_id), *(str(at[place]) for place in places)])


def topic_mark(topic_id: bytes) -> str:
    """Returns what a mark has of the topic's id, to tell it from another topic of the same name."""
    return topic_id.hex()[:ID_DIGITS]


def mark_event(mark: str) -> str:
    """Returns the event that tells a tab its position, and finds closed connections."""
    return f"{mark_line(mark)}event: mark\ndata: -\n\n"


def mark_line(mark: str) -> str:
    """Returns the line that gives an event its id, which the browser sends when it connects again."""
    return f"id: {mark}\n" if mark else ""


def read_mark(text: str, topic_id: bytes, places: Sequence[TopicPartition]) -> dict[TopicPartition, Position]:
    """Returns the positions of a text: the starts if it is of a topic that was created again since; none if it isn't of
    these partitions."""
    head, *words = text.split(",")
    is_mark = len(head) == ID_DIGITS and not set(head) - set("0123456789abcdef")
    if not is_mark or not all(word.isascii() and word.isdecimal() and len(word) < 19 for word in words):
        return {}
    if head != topic_mark(topic_id):
        return dict.fromkeys(places, START)
    if len(words) != len(places):
        return {}
    return {place: Position(PositionKind.OFFSET, int(word)) for place, word in zip(places, words, strict=True)}
