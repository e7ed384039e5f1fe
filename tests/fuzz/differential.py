"""Asks Odradek and Apache Kafka the same random requests, and holds their answers and their worlds together.

`python -m tests.fuzz.differential --requests 100000`, or `make fuzz-differential`. An episode is a world set up alike
in both and some hundred requests, all from its seed; it ends with questions about what has become of the world.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from broker.handlers import APIS
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.delete_topics import DeleteTopicsRequest
from protocol.messages.produce import ProduceRequest
from tests.fuzz.aftermath import questions
from tests.fuzz.meant import has_failed, is_open, reason
from tests.fuzz.reducing import reduced
from tests.fuzz.twins import READS, Answers, Twins, requests_of
from tests.interop.brokers import ApacheKafka, Odradek
from tests.interop.conformance.compare import Difference, compare
from tests.interop.conformance.peers import Peer, compared

PROPERTIES: Final = {
    "node.id": "1",
    "log.retention.ms": "-1",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
EPISODE: Final = 150
"""Requests to one world."""
SHOWN: Final = 900
REDUCTIONS: Final = 1_000_000_000
"""Worlds in which requests are made smaller have names from here on."""


class Counts:
    """Of each API and version: how often it was asked, answered alike, otherwise as is meant, otherwise."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
        self.reasons: Counter[str] = Counter()
        """Why answers differ that are meant to, by the first of their differences."""

        self.differences: dict[str, str] = {}
        """The first of each kind, and the request that shows it."""

    def add(self, name: str, version: int, outcome: str) -> None:
        self.rows[name, version][outcome] += 1
        self.rows[name, version]["requests"] += 1

    @property
    def total(self) -> Counter[str]:
        return sum(self.rows.values(), Counter())

    def printed(self) -> str:
        return "\n".join(f"{key}\n    {shown}" for key, shown in self.differences.items())

    def table(self) -> str:
        lines = [f"{'request':42} {'requests':>8} {'alike':>8} {'meant':>6} {'open':>6} {'different':>9}"]
        for (name, version), row in sorted(self.rows.items()):
            lines.append(
                f"{name.removesuffix('Request'):38} v{version:<3}{row['requests']:>8} {row['alike']:>8} "
                f"{row['meant']:>6} {row['open']:>6} {row['different']:>9}"
            )
        lines += [f"{count:8} meant: {reason}" for reason, count in self.reasons.most_common()]
        total = self.total
        lines.append(
            f"{len(self.rows)} APIs × versions: {total['requests']} requests, {total['alike']} alike, "
            f"{total['meant']} meant, {total['open']} known and open, {total['different']} different"
        )
        return "\n".join(lines)


class Fuzz:
    """Episodes over a pair of brokers."""

    def __init__(self, twins: Twins, served: dict[int, range], counts: Counts, *, reduces: bool = False) -> None:
        self.twins = twins
        self.reduces = reduces
        self.reductions = 0
        self.counts = counts
        self.requests = list(requests_of(served, [api.request for api in APIS]))

    def episode(self, seed: int, most: int = EPISODE) -> None:
        """One world, its requests, and what became of it; ends early where the worlds have come apart."""
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
        answers = self.twins.ask(cls, version, f"{seed}/{number}")
        if answers is None:
            return True
        before = len(self.counts.differences)
        outcome = self.judge(answers, f"{seed}, request {number}")
        if self.reduces and len(self.counts.differences) > before:
            self.reduce(cls, version, f"{seed}/{number}", answers)
            return False
        return cls.__name__ in READS or outcome == "alike" or (outcome == "meant" and not comes_apart(answers))

    def reduce(self, cls: type, version: int, seed: str, answers: Answers) -> None:
        """Prints the smallest request that shows the same, or that it takes what came before."""
        kinds = {kind_of(one) for one in self.strange(answers)}
        least = reduced(
            self.twins, cls, version, seed,
            lambda tried: bool(kinds & {kind_of(one) for one in self.strange(tried)}), self.fresh,
        )  # fmt: skip
        print(f"    least: {'it takes the requests before it' if least is None else short(least, SHOWN)}", flush=True)

    def fresh(self) -> str:
        self.reductions += 1
        return f"d{REDUCTIONS + self.reductions}"

    def strange(self, answers: Answers) -> list[Difference]:
        """The differences that nothing explains."""
        found = differences(answers)
        return [one for one in found if reason(one, answers) is None]

    def judge(self, answers: Answers, where: str) -> str:
        name = type(answers.request).__name__
        found, strange = differences(answers), self.strange(answers)
        if found and not strange:
            self.counts.reasons[str(reason(found[0], answers))] += 1
        outcome = "meant" if found else "alike"
        if strange:
            outcome = "open" if all(map(is_open, strange)) else "different"
        self.counts.add(name, answers.version, outcome)
        for one in strange[:3]:
            self.note(one, where)
        return outcome

    def note(self, one: Difference, where: str) -> None:
        """Prints a difference of a kind that has not been printed yet."""
        key = f"{'(open) ' if is_open(one) else ''}{kind_of(one)}"
        if key not in self.counts.differences:
            shown = f"v{one.version}, seed {where}: {short(one.request, SHOWN)}"
            self.counts.differences[key] = shown
            print(f"{key}\n    {shown}", flush=True)

    def clean(self) -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(remove_topics, self.twins.peers))


def differences(answers: Answers) -> list[Difference]:
    return [
        Difference(answers.request, answers.version, path, ours, theirs)
        for path, ours, theirs in compare("", answers.ours, answers.theirs)
    ]


def kind_of(one: Difference) -> str:
    """What a difference is, wherever in the answer it stands: Apache Kafka's value, then Odradek's."""
    path = re.sub(r"\[\d+\]", "[]", one.path)
    return f"{type(one.request).__name__} {path}: {short(one.theirs)} | {short(one.ours)}"


def comes_apart(answers: Answers) -> bool:
    """Whether what is meant to be answered otherwise leaves worlds that are not alike: Apache Kafka has failed halfway,
    or has lost all but the last of a partition's batches."""
    return has_failed(answers.theirs) or isinstance(answers.request, ProduceRequest)


def short(value: Any, most: int = 200) -> str:
    text = re.sub(r"(.)\1{30,}", r"\1…", re.sub(r"d\d+-", "", repr(value)))
    return text if len(text) < most else f"{text[:most]}…"


def remove_topics(peer: Peer) -> None:
    peer.close()
    names = list(peer.names.values())
    peer.quietly(DeleteTopicsRequest(topic_names=names, timeout_ms=5000), 5)


@contextmanager
def brokers(folder: Path) -> Iterator[tuple[Twins, dict[int, range]]]:
    pair = (Odradek(folder / "odradek", PROPERTIES), ApacheKafka(folder / "apache", PROPERTIES))
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda broker: broker.start(), pair))
        ours, theirs = (Peer(broker.name, broker.bootstrap, broker.data) for broker in pair)
        known: Any = theirs.quietly(ApiVersionsRequest(client_software_name="fuzz", client_software_version="1"), 3)
        yield Twins(ours, theirs), compared(known.api_keys, before_4=False)
    except Exception:
        for broker in pair:
            print(f"{broker.name}: {'runs' if broker.is_running else 'has ended'}\n{broker.tail()[-4000:]}")
        raise
    finally:
        for broker in pair:
            broker.forget()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.differential", description=__doc__)
    parser.add_argument("--requests", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0, help="of the first episode")
    parser.add_argument("--episode", type=int, help="only the one of this seed")
    parser.add_argument(
        "--shrink", action="store_true", help="make the request of each difference as small as it can be"
    )
    parser.add_argument("--seconds", type=float, default=1e9, help="end after so long at the latest")
    options = parser.parse_args()
    counts, began = Counts(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder, brokers(Path(folder)) as (twins, served):
        fuzz = Fuzz(twins, served, counts, reduces=options.shrink)
        seed = options.seed if options.episode is None else options.episode
        if options.episode is not None:
            options.requests = 1
        while counts.total["requests"] < options.requests and time.monotonic() - began < options.seconds:
            fuzz.episode(seed)
            seed += 1
    print(counts.table())
    print(f"seeds {options.seed} to {seed - 1} in {time.monotonic() - began:.0f} s")
    return 1 if counts.total["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
