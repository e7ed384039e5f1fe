"""Sends Odradek and Apache Kafka the same random requests, and compares their answers and states.

`python -m tests.fuzz.differential --requests 100000`, or `make fuzz-differential`. An episode creates the same world on
both, and sends a few hundred requests, all from its seed; at its end the worlds are compared. Several episodes run side
by side, each in a lane: no two lanes use the same names.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from broker.handlers import APIS
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.delete_topics import DeleteTopicsRequest
from protocol.messages.join_group import JoinGroupRequest
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.fuzz.aftermath import questions
from tests.fuzz.counts import SHOWN, Counts, kind_of, short
from tests.fuzz.meant import reason
from tests.fuzz.reducing import reduced
from tests.fuzz.twins import ASIDE, CLOSED, NO_ANSWER, READS, Answers, Twins, error_codes, requests_of
from tests.interop.brokers import ALONE, ApacheKafka, Odradek
from tests.interop.conformance.compare import Difference, compare
from tests.interop.conformance.peers import Peer, compared

NEVER_MS: Final = "86400000"
PROPERTIES: Final = {
    "node.id": "1",
    "broker.session.timeout.ms": "3600000",
    "log.retention.ms": "-1",
    **ALONE,
    "group.max.session.timeout.ms": "3600000",
    "group.consumer.session.timeout.ms": "3600000",
    "group.consumer.max.session.timeout.ms": "3600000",
    "group.consumer.assignment.interval.ms": "0",
    "group.streams.session.timeout.ms": "3600000",
    "group.streams.max.session.timeout.ms": "3600000",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.share.session.timeout.ms": "3600000",
    "group.share.max.session.timeout.ms": "3600000",
    "group.share.assignment.interval.ms": "0",
    "group.share.record.lock.duration.ms": "3600000",
    "group.share.max.record.lock.duration.ms": "3600000",
    "log.cleaner.backoff.ms": NEVER_MS,
    "log.retention.check.interval.ms": NEVER_MS,
    "offsets.retention.check.interval.ms": NEVER_MS,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": NEVER_MS,
}
"""Options that exclude effects of time: expiring sessions and locks, delayed assignments, periodic compaction and
retention, expiring offsets and transactions."""

EPISODE: Final = 150
"""Number of requests to one world."""

LANES: Final = 12
"""Number of episodes side by side: a missing answer, or a deadline, delays only its own lane."""

PATIENCE_S: Final = 60
"""Timeout for creating worlds, on busy machines."""

BROKERS_LAST: Final = 10_000
"""Number of requests to one pair of brokers: the data of earlier episodes stays, and would slow later ones down."""

METADATA_TOO_LARGE: Final = 12
UNKNOWN_MEMBER_ID: Final = 25
REDUCTIONS: Final = itertools.count(1_000_000_000)
"""The number from which worlds are named in which requests are reduced."""


class Fuzz:
    """Runs episodes with a pair of brokers, one after the other."""

    def __init__(
        self, twins: Twins, served: dict[int, range], counts: Counts, *, apis: str = "", reduces: bool = False
    ) -> None:
        """Draws requests of the APIs whose names match the pattern `apis`."""
        self.twins = twins
        self.reduces = reduces
        self.counts = counts
        self.requests = list(requests_of(served, [api.request for api in APIS if re.match(apis, api.request.__name__)]))

    def episode(self, seed: int, most: int = EPISODE) -> None:
        """Runs one world, its requests, and the final comparison; ends early if the worlds differ."""
        self.twins.begin(f"d{seed}")
        rng = random.Random(seed)
        try:
            for number in range(most):
                cls, version = rng.choice(self.requests)
                if not self.one(cls, version, seed, number):
                    return
            for request, version in questions(self.twins):
                answers = self.twins.put(request, version)
                self.judge(answers, f"{seed}, at the end")
        finally:
            self.clean()

    def one(self, cls: type, version: int, seed: int, number: int) -> bool:
        """Sends one request; returns True if both worlds are still equal."""
        answers = self.twins.ask(cls, version, f"{seed}/{number}")
        if answers is None:
            return True
        outcome, is_new = self.judge(answers, f"{seed}, request {number}")
        if self.reduces and is_new:
            self.reduce(cls, version, f"{seed}/{number}", answers)
            return False
        return outcome != "different" and not comes_apart(answers)

    def reduce(self, cls: type, version: int, seed: str, answers: Answers) -> None:
        """Prints the smallest request that shows the same difference, or that the difference depends on earlier
        requests."""
        kinds = {kind_of(one) for one in strange(answers)}
        least = reduced(
            self.twins, cls, version, seed,
            lambda tried: bool(kinds & {kind_of(one) for one in strange(tried)}), lambda: f"d{next(REDUCTIONS)}",
        )  # fmt: skip
        reduction = "it takes the requests before it" if least is None else short(least, SHOWN)
        print(f"{' | '.join(kinds)[:SHOWN]}\n    least: {reduction}", flush=True)

    def judge(self, answers: Answers, where: str) -> tuple[str, bool]:
        """Returns the kind of the answers, and True if one of their differences is of a new kind."""
        all_differences, unexplained = differences(answers), strange(answers)
        outcome = "different" if unexplained else "meant" if all_differences else "alike"
        self.counts.add(type(answers.request).__name__, answers.version, outcome)
        if outcome == "meant":
            self.counts.explain(all_differences[0], str(reason(all_differences[0], answers)), where)
        news = [self.counts.note(one, where) for one in unexplained[:3]]
        return outcome, any(news)

    def clean(self) -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(remove_topics, self.twins.peers))


def differences(answers: Answers) -> list[Difference]:
    return [
        Difference(answers.request, answers.version, path, ours, theirs)
        for path, ours, theirs in compare("", answers.ours, answers.theirs)
    ]


def strange(answers: Answers) -> list[Difference]:
    """Returns the differences without an explanation."""
    return [one for one in differences(answers) if reason(one, answers) is None]


def comes_apart(answers: Answers) -> bool:
    """True if the worlds may differ after answers to a request that changes something: more than the messages differ, a
    connection has ended with its sessions, or only one broker has a group."""
    if type(answers.request).__name__ in ASIDE:
        return False
    if any(answer in (CLOSED, NO_ANSWER) for answer in (answers.ours, answers.theirs)):
        return True  # a connection that waits for an answer keeps its share sessions in Apache Kafka when it ends
    if isinstance(answers.request, OffsetCommitRequest | TxnOffsetCommitRequest) and METADATA_TOO_LARGE in error_codes(
        answers.theirs
    ):
        return True
    if forgets_a_group(answers):
        return True
    is_read = type(answers.request).__name__ in READS
    return not is_read and not all(one.path.endswith("error_message") for one in differences(answers))


def forgets_a_group(answers: Answers) -> bool:
    """True if the request may be a classic member that joins an empty consumer group and is unknown: Apache Kafka then
    forgets the group and its offsets until it reads its log again."""
    request = answers.request
    if not isinstance(request, JoinGroupRequest) or not request.member_id:
        return False
    return UNKNOWN_MEMBER_ID in error_codes(answers.theirs)


def remove_topics(peer: Peer) -> None:
    peer.close()
    names = list(peer.names.values())
    peer.quietly(DeleteTopicsRequest(topic_names=names, timeout_ms=5000), 5)


class BrokerPair(NamedTuple):
    """Odradek and Apache Kafka, and the APIs that both serve."""

    odradek: Peer
    apache: Peer
    served: dict[int, range]

    def twins(self, lane: int) -> Twins:
        """Returns both brokers, with new connections."""
        ours, theirs = (Peer(peer.name, f"{peer.host}:{peer.port}", peer.data) for peer in (self.odradek, self.apache))
        ours.patience_s = theirs.patience_s = PATIENCE_S
        return Twins(ours, theirs, lane)


def side_by_side(
    pair: BrokerPair,
    counts: Counts,
    seeds: Iterator[int],
    is_over: Callable[[], bool],
    *,
    apis: str = "",
    reduces: bool = False,
) -> None:
    """Runs the episodes of the seeds, in the given number of lanes. Each episode is a function of its seed."""

    def lane(number: int) -> None:
        fuzz = Fuzz(pair.twins(number), pair.served, counts, apis=apis, reduces=reduces)
        while not is_over():
            fuzz.episode(next(seeds))

    with ThreadPoolExecutor(LANES) as pool:
        list(pool.map(lane, range(LANES)))


@contextmanager
def brokers(folder: Path) -> Iterator[BrokerPair]:
    pair = (Odradek(folder / "odradek", PROPERTIES), ApacheKafka(folder / "apache", PROPERTIES))
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda broker: broker.start(), pair))
        ours, theirs = (Peer(broker.name, broker.bootstrap, broker.data) for broker in pair)
        versions: Any = theirs.quietly(ApiVersionsRequest(client_software_name="fuzz", client_software_version="1"), 3)
        yield BrokerPair(ours, theirs, compared(versions.api_keys, before_4=False))
    except Exception:
        for broker in pair:
            print(f"{broker.name}: {'runs' if broker.is_running else 'has ended'}\n{broker.tail()[-4000:]}")
        raise
    finally:
        for broker in pair:
            broker.forget()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.differential", description=__doc__)
    parser.add_argument("--requests", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0, help="of the first episode")
    parser.add_argument("--episode", type=int, help="only the one of this seed")
    parser.add_argument("--apis", default="", help="only requests whose names match, such as 'Streams|Txn'")
    parser.add_argument(
        "--shrink", action="store_true", help="make the request of each difference as small as it can be"
    )
    parser.add_argument("--examples", type=int, default=0, help="of each kind of difference that is meant, to be shown")
    parser.add_argument("--seconds", type=float, default=1e9, help="end after so long at the latest")
    return parser.parse_args()


def main() -> int:
    options, began = parse(), time.monotonic()
    counts = Counts(options.examples)
    if options.episode is not None:
        with tempfile.TemporaryDirectory() as folder, brokers(Path(folder)) as pair:
            fuzz = Fuzz(pair.twins(0), pair.served, counts, apis=options.apis, reduces=options.shrink)
            fuzz.episode(options.episode)
    else:
        run(options, counts, began)
    print(counts.table())
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if counts.total["different"] else 0


def run(options: argparse.Namespace, counts: Counts, began: float) -> None:
    """Runs pairs of brokers one after the other, until all requests have been sent or the time is over."""
    seeds = itertools.count(options.seed)

    def is_over(most: int = options.requests) -> bool:
        return counts.total["requests"] >= most or time.monotonic() - began > options.seconds

    while not is_over():
        most = min(options.requests, counts.total["requests"] + BROKERS_LAST)
        with tempfile.TemporaryDirectory() as folder, brokers(Path(folder)) as pair:
            side_by_side(pair, counts, seeds, partial(is_over, most), apis=options.apis, reduces=options.shrink)
        print(f"{time.monotonic() - began:.0f} s: {dict(counts.total)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
