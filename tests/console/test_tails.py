"""Tests live tails: tabs that share a feed each get what their own position, filter and rights demand."""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Literal

import pytest
from confluent_kafka import Producer

from console.visit import MAX_STREAMS
from odradek.testing import Acl, Broker, Cluster
from tests.console.browser import TIMEOUT_S, Browser, ConsoleProcess, produce, running_console
from tests.waiting import wait_until

Events = Iterator[tuple[str, str]]

OPERATIONS: Sequence[Literal["READ", "WRITE", "DESCRIBE"]] = ("READ", "WRITE", "DESCRIBE")

VALUE = re.compile(r"<pre>(.*?)</pre>", re.DOTALL)
MORE = re.compile(r"([\d\u202f]+) more records?")
UNREAD = re.compile(r"Skipped ([\d\u202f]+) offsets? before these records")


class Seen:
    """The values that a tab has shown so far, the oldest first, and the numbers of missed records that it has named."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self.values: list[str] = []
        self.missed = 0
        self.unread = 0
        self.states: list[str] = []

    @property
    def count(self) -> int:
        return len(self.values) + self.missed + self.unread

    def until(self, holds: Callable[[], bool]) -> None:
        """Reads events until a condition holds."""
        while not holds():
            name, content = next(self._events)
            if name == "state":
                self.states.append(content)
            else:
                self.values += reversed(VALUE.findall(content))
                self.missed += counts(MORE, content)
                self.unread += counts(UNREAD, content)

    def until_values(self, *values: str) -> None:
        self.until(lambda: len(self.values) >= len(values))
        assert self.values == list(values)


def counts(pattern: re.Pattern[str], content: str) -> int:
    return sum(int(number.replace("\u202f", "")) for number in pattern.findall(content))


@contextmanager
def tail(browser: Browser, topic: str, query: str = "", **headers: str) -> Iterator[Seen]:
    """Opens a tab with a live tail."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with browser.events(f"/live/records/{topic}?live=1{query}", named) as events:
        yield Seen(events)


def head_of_mark(browser: Browser, topic: str) -> str:
    """Returns the part of a tail's marks that names the topic."""
    with browser.events(f"/live/records/{topic}?live=1") as events:
        assert next(events)[0] == "mark"
    return browser.last_event_id.split(",")[0]


def test_tabs_share_the_fetches_of_a_topic_until_the_last_one_leaves(browser: Browser, broker: Broker) -> None:
    for topic in ("tails-one", "tails-many"):
        broker.create_topic(topic, partitions=1)
    with ExitStack() as many, tail(browser, "tails-one") as one:
        tabs = [many.enter_context(tail(browser, "tails-many", f"&value={at % 5}")) for at in range(20)]
        produce(broker.bootstrap, "tails-one", [b"x"])
        produce(broker.bootstrap, "tails-many", [b"01234"])
        for tab in (one, *tabs):
            tab.until(lambda tab=tab: tab.count == 1)  # type: ignore[misc]
        with (
            broker.fault(api="Fetch", topic="tails-one", shuffle=1) as of_one,
            broker.fault(api="Fetch", topic="tails-many", shuffle=1) as of_many,
        ):
            wait_until(lambda: of_one.fired >= 10)
            assert 0 < of_many.fired <= 2 * of_one.fired
            many.close()

            def is_quiet() -> bool:
                before, since = of_many.fired, of_one.fired
                wait_until(lambda: of_one.fired >= since + 5)
                return of_many.fired == before

            wait_until(is_quiet)


def test_tabs_with_different_filters_and_formats_get_their_own(browser: Browser, broker: Broker) -> None:
    broker.create_topic("tails-filters", partitions=2)
    with ExitStack() as tabs:
        odd, even, both, hexadecimal, second = (
            tabs.enter_context(tail(browser, "tails-filters", query))
            for query in ("&json=odd%3Dtrue", "&json=odd%3Dfalse", "", "&decode=hex", "&partitions=1")
        )
        produce(broker.bootstrap, "tails-filters", [b'{"odd":true}'])
        odd.until_values("{&#34;odd&#34;: true}")
        produce(broker.bootstrap, "tails-filters", [b'{"odd":false}'])
        even.until_values("{&#34;odd&#34;: false}")
        produce(broker.bootstrap, "tails-filters", [b"z"], 1)
        both.until_values("{&#34;odd&#34;: true}", "{&#34;odd&#34;: false}", "z")
        hexadecimal.until_values("7b22 6f64 6422 3a74 7275 657d", "7b22 6f64 6422 3a66 616c 7365 7d", "7a")
        second.until_values("z")


def test_a_later_tab_gets_what_its_own_position_demands(browser: Browser, broker: Broker) -> None:
    broker.create_topic("tails-later", partitions=1)
    produce(broker.bootstrap, "tails-later", [b"0", b"1", b"2"])
    with tail(browser, "tails-later") as first:
        produce(broker.bootstrap, "tails-later", [b"3"])
        first.until_values("3")
        with (
            tail(browser, "tails-later", "&from=1") as from_1,
            tail(browser, "tails-later", "&from=start") as from_start,
            tail(browser, "tails-later", "&from=-1&value=3") as filtered,
            tail(browser, "tails-later") as from_now,
        ):
            produce(broker.bootstrap, "tails-later", [b"4"])
            from_1.until_values("1", "2", "3", "4")
            from_start.until_values("0", "1", "2", "3", "4")
            filtered.until_values("3")
            from_now.until_values("4")
            first.until_values("3", "4")


def test_a_tab_that_comes_back_goes_on_where_it_was(browser: Browser, broker: Broker) -> None:
    broker.create_topic("tails-back", partitions=2)
    produce(broker.bootstrap, "tails-back", [b"0"])
    with tail(browser, "tails-back") as tab:
        produce(broker.bootstrap, "tails-back", [b"1"])
        tab.until_values("1")
    mark = browser.last_event_id
    assert re.fullmatch("[0-9a-f]{8},2,0", mark)
    produce(broker.bootstrap, "tails-back", [b"2"], 1)
    with (
        tail(browser, "tails-back", last_event_id=mark) as again,
        tail(browser, "tails-back", f"&after={mark}") as same,
    ):
        again.until_values("2")
        same.until_values("2")
        produce(broker.bootstrap, "tails-back", [b"3"])
        again.until_values("2", "3")


@pytest.mark.parametrize(
    "mark",
    [
        "x",
        "0,0",
        "HEAD",
        "HEAD,-1,0",
        "HEAD,1",
        "HEAD,0,0,0",
        "HEAD," + "9" * 19 + ",0",
        "HEAD,1;1",
        "HEAD,\u0661,0",
        "HEAD,,",
        "HEAD,999,999",
        "HEAD0,0,0",
        "ABCDEF00,0,0",
        "0000000\u0661,0,0",
    ],
)
def test_a_mark_that_is_none_begins_at_the_end(browser: Browser, broker: Broker, mark: str) -> None:
    topic = f"tails-mark-{abs(hash(mark))}"
    broker.create_topic(topic, partitions=2)
    produce(broker.bootstrap, topic, [b"before"])
    query = "&after=" + mark.replace("HEAD", head_of_mark(browser, topic)).replace("\u0661", "%D9%A1")
    with tail(browser, topic, query) as tab:
        produce(broker.bootstrap, topic, [b"after"])
        tab.until_values("after")


def test_a_stale_mark_goes_on_at_the_start_of_what_is_left(browser: Browser, broker: Broker) -> None:
    broker.create_topic("tails-stale", partitions=1)
    produce(broker.bootstrap, "tails-stale", [b"0", b"1", b"2"])
    page = browser.confirm(
        "/topics/tails-stale/trim", browser.change("/topics/tails-stale/trim", to="2"), typed="tails-stale"
    )
    assert ": done" in page.words
    with tail(browser, "tails-stale", last_event_id=head_of_mark(browser, "tails-stale") + ",0") as tab:
        tab.until_values("2")


def test_a_mark_far_behind_leaves_records_out_and_says_so(browser: Browser, broker: Broker) -> None:
    broker.create_topic("tails-far", partitions=1)
    produce(broker.bootstrap, "tails-far", [b"x"] * 21_000)
    with tail(browser, "tails-far", last_event_id=head_of_mark(browser, "tails-far") + ",0") as tab:
        tab.until(lambda: tab.count >= 21_000)
        assert (tab.count, tab.unread) == (21_000, 1_000)


def test_each_record_is_shown_or_counted_also_for_a_slow_tab(browser: Browser, broker: Broker) -> None:
    broker.create_topic("tails-fast", partitions=2)
    with tail(browser, "tails-fast") as fast, tail(browser, "tails-fast") as slow:
        produce(broker.bootstrap, "tails-fast", [b"first"])
        fast.until_values("first")
        for part in range(6):
            produce(broker.bootstrap, "tails-fast", [b"%d " % part + b"x" * 1000] * 500, part % 2)
            fast.until(lambda part=part: fast.count == 1 + 500 * (part + 1))  # type: ignore[misc]
        assert fast.missed + fast.unread > 0
        slow.until(lambda: slow.count >= 3001)
        assert slow.count == 3001
        assert slow.values[0] == "first"


def test_a_topic_that_is_written_too_fast_is_not_read_whole(browser: Browser, broker: Broker) -> None:
    broker.create_topic("tails-flood", partitions=1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 0})
    with tail(browser, "tails-flood") as tab:
        for _ in range(200_000):
            producer.produce("tails-flood", b"x")
        assert producer.flush(TIMEOUT_S) == 0
        produce(broker.bootstrap, "tails-flood", [b"last"])
        tab.until(lambda: tab.values[-1:] == ["last"])
        assert tab.count == 200_001


def test_a_tab_shows_that_the_broker_is_away_and_goes_on_without_a_gap() -> None:
    with Broker() as broker, running_console(broker.bootstrap) as console:
        broker.create_topic("tails-away", partitions=1)
        with tail(console.browser(), "tails-away") as one, tail(console.browser(), "tails-away", "&value=2") as other:
            produce(broker.bootstrap, "tails-away", [b"1", b"2"])
            one.until_values("1", "2")
            broker.kill()
            for tab in (one, other):
                tab.until(lambda tab=tab: bool(tab.states))  # type: ignore[misc]
                assert "Records can't be read now" in tab.states[-1]
            broker.restart()
            produce(broker.bootstrap, "tails-away", [b"2"])
            one.until_values("1", "2", "2")
            other.until_values("2", "2")
            for tab in (one, other):
                tab.until(lambda tab=tab: "Live:" in tab.states[-1])  # type: ignore[misc]


def test_a_topic_that_is_created_again_is_shown_from_its_start(browser: Browser, broker: Broker) -> None:
    broker.create_topic("tails-again", partitions=1)
    with tail(browser, "tails-again") as tab:
        produce(broker.bootstrap, "tails-again", [b"old"])
        tab.until_values("old")
        broker.delete_topic("tails-again")
        tab.until(lambda: bool(tab.states))
        assert "UNKNOWN_TOPIC_OR_PARTITION" in tab.states[-1]
        assert browser.get("/live/records/tails-again?live=1").status == 404
        broker.create_topic("tails-again", partitions=1)
        produce(broker.bootstrap, "tails-again", [b"new-0", b"new-1", b"new-2"])
        tab.until_values("old", "new-0", "new-1", "new-2")
    mark = f"{browser.last_event_id.split(',')[0]},1"
    broker.delete_topic("tails-again")
    broker.create_topic("tails-again", partitions=2)
    produce(broker.bootstrap, "tails-again", [b"newer-0", b"newer-1"])
    with tail(browser, "tails-again", last_event_id=mark) as tab:
        produce(broker.bootstrap, "tails-again", [b"newer-2"])
        tab.until_values("newer-0", "newer-1", "newer-2")


@pytest.mark.parametrize("records", [1, 5])
def test_a_topic_that_is_created_again_between_two_looks_is_shown_once(broker: Broker, records: int) -> None:
    topic, new = f"tails-quick-{records}", [f"new-{count}" for count in range(records)]
    broker.create_topic(topic, partitions=1)
    with running_console(broker.bootstrap) as console, tail(console.browser(), topic) as tab:
        produce(broker.bootstrap, topic, [b"old"] * 3)
        tab.until_values("old", "old", "old")
        console.process.send_signal(signal.SIGSTOP)
        broker.delete_topic(topic)
        broker.create_topic(topic, partitions=1)
        produce(broker.bootstrap, topic, [name.encode() for name in new])
        console.process.send_signal(signal.SIGCONT)
        tab.until_values("old", "old", "old", *new)
        with broker.fault(api="Fetch", topic=topic, times=1, error="NOT_LEADER_OR_FOLLOWER") as moved:
            wait_until(lambda: moved.fired == 1)
        produce(broker.bootstrap, topic, [b"newer"])
        tab.until_values("old", "old", "old", *new, "newer")


def test_a_tab_that_catches_up_tells_its_position_and_follows_a_new_topic(browser: Browser, broker: Broker) -> None:
    broker.create_topic("tails-slow", partitions=1)
    produce(broker.bootstrap, "tails-slow", [os.urandom(100_000) for _ in range(40)])
    with (
        broker.fault(api="Fetch", topic="tails-slow", delay_ms=400),
        browser.events("/live/records/tails-slow?live=1&from=start&value=brand-new") as events,
    ):
        offsets = list[int]()
        while len({*offsets}) < 3:
            assert next(events)[0] == "mark"
            offsets.append(int(browser.last_event_id.split(",")[1]))
        assert offsets == sorted(offsets)
        assert offsets[-1] < 40
        broker.delete_topic("tails-slow")
        broker.create_topic("tails-slow", partitions=1)
        produce(broker.bootstrap, "tails-slow", [b"brand-new"])
        tab = Seen(events)
        tab.until_values("brand-new")


def test_a_tab_gets_nothing_from_before_it_was_opened_while_others_lag(browser: Browser, broker: Broker) -> None:
    broker.create_topic("tails-lag", partitions=1)
    with tail(browser, "tails-lag") as first:
        produce(broker.bootstrap, "tails-lag", [b"0"])
        first.until_values("0")
        with broker.fault(api="Fetch", topic="tails-lag", delay_ms=500) as slow:
            produce(broker.bootstrap, "tails-lag", [b"%d" % count + b" " * 100_000 for count in range(30)])
            with tail(browser, "tails-lag") as later:
                before = slow.fired
                wait_until(lambda: slow.fired > before + 5)
                produce(broker.bootstrap, "tails-lag", [b"last"])
                later.until_values("last")
                assert later.count == 1


def test_a_tab_that_joins_a_feed_within_a_turn_gets_a_partition_whose_leader_was_away(
    browser: Browser, broker: Broker
) -> None:
    broker.create_topic("tails-joined", partitions=1)
    with tail(browser, "tails-joined") as first, ExitStack() as tabs:
        for count in range(3):  # without a leader, most of a turn is a pause
            with (
                broker.fault(topic="tails-joined", partition=0, no_leader=True),
                broker.fault(api="Fetch", topic="tails-joined", error="NOT_LEADER_OR_FOLLOWER"),
            ):
                first.until(lambda: "has no leader" in "".join(first.states[-1:]))
                later = tabs.enter_context(tail(browser, "tails-joined", f"&value={count}"))
            produce(broker.bootstrap, "tails-joined", [b"%d" % count])
            later.until_values(str(count))
            first.until(lambda: "Live:" in first.states[-1])


@pytest.mark.parametrize(
    "fault",
    [{"disconnect": True}, {"half_answer": True}, {"error": "NOT_LEADER_OR_FOLLOWER"},
     {"error": "UNKNOWN_SERVER_ERROR"}, {"error": "OFFSET_OUT_OF_RANGE"}, {"throttle_ms": 50}],
    ids=lambda fault: next(iter(fault)) + str(next(iter(fault.values()))),
)  # fmt: skip
def test_no_record_is_lost_or_shown_twice_around_a_failed_fetch(
    browser: Browser, broker: Broker, fault: dict[str, object]
) -> None:
    topic = f"tails-fault-{abs(hash(str(fault)))}"
    broker.create_topic(topic, partitions=1)
    with tail(browser, topic) as tab:
        produce(broker.bootstrap, topic, [b"0"])
        tab.until_values("0")
        with broker.fault(api="Fetch", topic=topic, times=3, **fault) as failing:  # type: ignore[arg-type]
            produce(broker.bootstrap, topic, [b"1"])
            wait_until(lambda: failing.fired == 3)
        tab.until_values("0", "1")
        produce(broker.bootstrap, topic, [b"2"])
        tab.until_values("0", "1", "2")


def test_what_one_leader_answers_is_shown_also_if_another_fails() -> None:
    with Cluster(2) as cluster, running_console(cluster.bootstrap) as console:
        cluster.create_topic("tails-two", partitions=4, replicas=1)
        leaders = {index: cluster.leader("tails-two", index) for index in range(4)}
        good, bad = (next(index for index in range(4) if leaders[index] == leader) for leader in (1, 2))
        lost = next(index for index in range(4) if index not in (good, bad))
        with (
            tail(console.browser(), "tails-two", f"&partitions={good},{bad},{lost}") as tab,
            cluster.fault(topic="tails-two", partition=lost, no_leader=True),
        ):
            produce(cluster.bootstrap, "tails-two", [b"0"], bad)
            tab.until_values("0")
            with cluster.fault(api="Fetch", topic="tails-two", partition=bad, error="KAFKA_STORAGE_ERROR") as failing:
                for count in range(1, 11):  # without a leader to wait for, the feed finds both answers at once
                    produce(cluster.bootstrap, "tails-two", [b"%d" % count], good)
                    before = failing.fired
                    wait_until(lambda before=before: failing.fired > before)  # type: ignore[misc]
            produce(cluster.bootstrap, "tails-two", [b"11"], bad)
            tab.until(lambda: len(tab.values) >= 12)
            assert sorted(map(int, tab.values)) == [*range(12)]


def test_a_leader_that_does_not_answer_is_named(broker: Broker) -> None:
    broker.create_topic("tails-silent", partitions=1)
    with (
        running_console(broker.bootstrap, "-X", "request.timeout.ms=12000") as console,
        tail(console.browser(), "tails-silent") as tab,
    ):
        produce(broker.bootstrap, "tails-silent", [b"1"])
        tab.until_values("1")
        with broker.fault(api="Fetch", topic="tails-silent", drop=True):
            tab.until(lambda: "t answer" in "".join(tab.states))
            produce(broker.bootstrap, "tails-silent", [b"2"])
        tab.until(lambda: len(tab.values) >= 2 and "Live:" in tab.states[-1])
        assert tab.values == ["1", "2"]


def test_a_topic_that_is_created_again_with_fewer_partitions_is_shown(browser: Browser, broker: Broker) -> None:
    broker.create_topic("tails-fewer", partitions=3)
    with tail(browser, "tails-fewer") as tab, tail(browser, "tails-fewer", "&partitions=0") as first:
        produce(broker.bootstrap, "tails-fewer", [b"old"])
        tab.until_values("old")
        first.until_values("old")
        broker.delete_topic("tails-fewer")
        for each in (tab, first):
            each.until(lambda each=each: "UNKNOWN_TOPIC_OR_PARTITION" in "".join(each.states))  # type: ignore[misc]
        broker.create_topic("tails-fewer", partitions=1)
        produce(broker.bootstrap, "tails-fewer", [b"new-0", b"new-1"])
        tab.until_values("old", "new-0", "new-1")
        first.until_values("old", "new-0", "new-1")
        tab.until(lambda: "tails-fewer-2" in tab.states[-1])
        first.until(lambda: "Live:" in first.states[-1])


def test_a_partition_without_a_leader_is_named_and_the_others_go_on() -> None:
    with Cluster(2) as cluster, running_console(cluster.bootstrap) as console:
        cluster.create_topic("tails-led", partitions=2, replicas=1)
        away = next(index for index in range(2) if cluster.leader("tails-led", index) == 2)
        with tail(console.browser(), "tails-led") as tab:
            produce(cluster.bootstrap, "tails-led", [b"1"], away)
            tab.until_values("1")
            cluster.broker(2).kill()
            tab.until(lambda: f"tails-led-{away} has no leader" in "".join(tab.states[-1:]))
            with tail(console.browser(), "tails-led") as later:
                produce(cluster.bootstrap, "tails-led", [b"2"], 1 - away)
                tab.until_values("1", "2")
                later.until_values("2")
                later.until(lambda: f"tails-led-{away}" in "".join(later.states[-1:]))
            with tail(console.browser(), "tails-led", "&value=3") as latest:
                cluster.broker(2).restart()
                produce(cluster.bootstrap, "tails-led", [b"3"], away)
                tab.until_values("1", "2", "3")
                latest.until_values("3")


def log_in(console: ConsoleProcess, user: str) -> Browser:
    browser = Browser(console.base)
    assert browser.post("/login", {"user": user, "password": f"secret-of-{user}"}).status == 303
    return browser


def test_a_user_gets_nothing_of_what_another_user_may_read() -> None:
    acls = [Acl(user="ana", operation=operation, topic="tails-secret") for operation in OPERATIONS]
    acls.append(Acl(user="bob", operation="DESCRIBE", topic="tails-secret"))
    with (
        Broker(users={user: f"secret-of-{user}" for user in ("ana", "bob")}, acls=acls) as secured,
        running_console(secured.bootstrap, "--login", "-X", "security.protocol=SASL_PLAINTEXT") as console,
    ):
        secured.create_topic("tails-secret", partitions=1)
        producer = Producer(secured.client_config("ana"))
        ana, bob = log_in(console, "ana"), log_in(console, "bob")
        with tail(ana, "tails-secret") as may, tail(bob, "tails-secret") as may_not:
            producer.produce("tails-secret", b"1")
            producer.flush(TIMEOUT_S)
            may.until_values("1")
            may_not.until(lambda: "TOPIC_AUTHORIZATION_FAILED" in "".join(may_not.states))
            secured.control.post(
                "/v1/acls", Acl(user="ana", operation="READ", topic="tails-secret", allow=False).fields()
            )
            may.until(lambda: "TOPIC_AUTHORIZATION_FAILED" in "".join(may.states))
            producer.produce("tails-secret", b"2")
            producer.flush(TIMEOUT_S)
        assert (may.values, may_not.values) == (["1"], [])


def test_masks_hide_in_a_tail(broker: Broker) -> None:
    broker.create_topic("tails-masked", partitions=1)
    with (
        running_console(broker.bootstrap, "--mask", r"\d{4}-\d{4}") as console,
        tail(console.browser(), "tails-masked") as one,
        tail(console.browser(), "tails-masked", "&value=4111") as other,
    ):
        produce(broker.bootstrap, "tails-masked", [b"card 4111-1111", b"4111"])
        one.until_values("card •••", "4111")
        other.until_values("4111")


def test_a_tail_ends_with_its_login_only(console: ConsoleProcess, broker: Broker) -> None:
    broker.create_topic("tails-left", partitions=1)
    leaving, staying = console.browser(), console.browser()
    with tail(leaving, "tails-left") as left, tail(staying, "tails-left") as stays:
        produce(broker.bootstrap, "tails-left", [b"1"])
        left.until_values("1")
        assert leaving.post("/logout", {"csrf": leaving.csrf}).status == 303
        produce(broker.bootstrap, "tails-left", [b"2"])
        with pytest.raises(StopIteration):
            left.until(lambda: len(left.values) > 1)
        stays.until_values("1", "2")


def test_a_live_part_leaves_the_notice_to_the_next_page(browser: Browser, broker: Broker) -> None:
    broker.create_topic("tails-notice", partitions=1)
    answer = browser.post("/topics/tails-notice/produce", {"csrf": browser.csrf, "value": "x"})
    with browser.events("/live/overview") as events:
        next(events)
    assert "written to partition 0 at offset 0" in browser.get(answer.headers["location"]).words


def test_only_so_many_live_pages_are_open_at_once(broker: Broker) -> None:
    broker.create_topic("tails-crowd", partitions=1)
    with running_console(broker.bootstrap) as console:
        browser = console.browser()
        with ThreadPoolExecutor(20) as callers, ExitStack() as tabs:
            paths = ["/live/records/tails-crowd?live=1"] * (MAX_STREAMS + 30)
            statuses = Counter(callers.map(lambda path: tabs.enter_context(browser.opened(path)), paths))
            assert statuses == {200: MAX_STREAMS, 503: 30}
            assert browser.get("/topics/tails-crowd").status == 200
        wait_until(lambda: browser.get("/live/records/tails-crowd?order=oldest&value=x").status == 200)


def test_a_search_that_fails_says_so_and_ends(browser: Browser, broker: Broker) -> None:
    broker.create_topic("tails-search", partitions=1)
    produce(broker.bootstrap, "tails-search", [os.urandom(1000) for _ in range(2000)])
    with (
        broker.fault(api="Fetch", topic="tails-search", skip=1, error="UNKNOWN_SERVER_ERROR"),
        browser.events("/live/records/tails-search?value=absent&order=oldest") as events,
    ):
        seen = list(iter(lambda: next(events), ("done", "")))
    assert "The search ended early" in seen[-1][1]
