"""What was tried for each goal that is missed, what each try gave, and what the limit is. Pure.

The tables of docs/benchmarks.md list these texts below the goals that are missed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from bench.coordinator_loads import TRANSACTION_MS
from bench.figures import FIGURES
from bench.goals import LIMIT, OURS, verdicts
from bench.results import LoadResult

SENDFILE: Final = (
    "the kernel takes most of it, for the copy into the socket and the pages of the mapped file. The floor, which "
    "sends the same bytes from a mapped file without a protocol, takes 0.30 CPU-s/GB, 0.82 of Apache Kafka's. "
    "`sendfile` avoids both, but costs more on loopback, because it sends page by page and wakes the reader for each "
    "piece: with librdkafka on an idle machine it took 0.64 CPU-s/GB against 0.37, while the client read 1.4 times as "
    "fast (six rounds)"
)
SHARE: Final = (
    "a plain Fetch of the same records costs 0.35 of it; the rest is the work of a share group: records are acquired "
    "and acknowledged batch by batch, and the state is written to its topic. A warm JVM does that for a fifth of its "
    "first round's cost. The clients' JVM uses most of the two cores, and each round includes the seconds of joining, "
    "which grow with the number of members"
)
COORDINATOR: Final = (
    "since this run a handler that waits runs without a task: a commit of 100 members takes 0.92 of the CPU time "
    "(three rounds of `python -m bench.control`). To compile the handler of heartbeats and its decision made no "
    "measurable difference (76 and 78 µs a heartbeat, medians of three), nor did link-time optimization of the "
    "compiled core (74 and 75 µs, medians of seven); without any compiled module a heartbeat costs 85 µs. The kernel "
    "takes 0.28 of it, nearly all for one `write` and one `read`, and calls of Python's C API take 0.55"
)
TRANSACTIONS: Final = (
    "since this run a batch that continues its transaction takes the short way of plain batches, without a coroutine: "
    "with transactions of 100 ms that is 0.78 of the CPU time (`python -m bench.control --before a2320580`, three "
    "rounds). What is left is the cost of an idempotent batch"
)
TLS_PRODUCE: Final = (
    "OpenSSL decrypts each TLS record in a call of its own. librdkafka sends a quarter of its records as two TLS "
    "records of 1,000 and of 10 bytes, so that a gigabyte is 550,000 TLS records. By `perf`, OpenSSL takes 0.28 of "
    "the broker's CPU time, the kernel 0.24, the C library's copies 0.16 and the interpreter 0.25. Decryption itself "
    "reaches 2.2 GB/s (`openssl speed`), a tenth of it. A compiled TLS transport made no measurable difference (3.2 "
    "and 3.3 CPU-s/GB more than without TLS, medians of four pairs). TLS in the kernel needs a module that this "
    "machine's kernel doesn't have, and Python's `ssl` has no call that reads several TLS records"
)
FOLLOWER: Final = (
    "by `perf`, half of a follower's CPU time writes to the page cache and a fifth is the kernel's socket code; a "
    "quarter is the interpreter's. Pauses between fetches of up to five milliseconds and one `pwrite` for batches that "
    "arrive together are in it already"
)
TRIED: Final[Mapping[tuple[str, str], str]] = {
    ("start-up", LIMIT): "most of it is the interpreter and the import of modules, and the machine was slow in this "
    "run: Apache Kafka took 1.6 times as long as on 2026-11-22, when Odradek took 167 ms",
    ("produce", "floor"): "the cost above the floor is the protocol, and the check of every record",
    ("produce", "kafka"): "the table above divides the time; the kernel takes half of it",
    (
        "produce-idempotent",
        "kafka",
    ): "a batch has 16 KB, so that a gigabyte takes four times as many requests as "
    "in the row above, at 36 µs each. The kernel takes six tenths of that: a read, a `pwrite`, a write, a wait",
    (
        "produce-lz4",
        "kafka",
    ): "a quarter of it inflates the records for their check, half of that in liblz4; a fifth is "
    "`pwrite` and indexes, a seventh answers. The check itself is 2 %. A buffer that need not grow, and a heap that "
    "keeps its pages (glibc's mallopt), made no measurable difference: 3.86 and 3.97 CPU-s/GB, and 3.88 without the "
    "heap, on a day when Apache Kafka took 5.34",
    (
        "produce-unbatched",
        "kafka",
    ): "the kernel takes four tenths of it, because each request is read and answered separately; a "
    "bare uvloop server that answers sixty constant bytes takes more than half as much",
    **{(load, "kafka"): COORDINATOR for load in ("offset-commits", "group-commits", "group-heartbeats")},
    **{(f"transactions-{duration_ms}ms", "kafka"): TRANSACTIONS for duration_ms in TRANSACTION_MS},
    **{(load, "kafka-tls"): TLS_PRODUCE for load in ("produce", "produce-librdkafka")},
    ("cluster-follow", "kafka"): FOLLOWER,
    ("consume", "kafka"): SENDFILE,
    ("consume-lz4", "kafka"): SENDFILE,
    ("consume-share", "kafka"): SHARE,
    ("consume-share-4", "kafka"): SHARE,
    ("consume-share-16", "kafka"): SHARE,
    (
        "latency",
        "kafka",
    ): "most of the 0.2 ms are two wake-ups of the client's threads and two passes through the kernel's "
    "loopback, the same for both brokers. The broker itself takes 119 µs for a record, Apache Kafka 302",
}
"""Reasons why a goal is missed, and what was tried, by load and by the peer that it is compared with."""


def missed(results: Sequence[LoadResult], ours: str = OURS) -> str:
    """Returns a list of the goals that the peer `ours` misses, with what was tried for them. Goals with the same text
    are listed once."""
    lines, listed = list[str](), set[str]()
    for result in results:
        for verdict in verdicts(result.load, result.figures, result.peers):
            goal = verdict.goal
            tried = TRIED.get((result.load, goal.other))
            if verdict.reached or goal.ours != ours or tried is None or tried in listed:
                continue
            listed.add(tried)
            other = f" of {result.peers[goal.other].title}" if goal.other in result.peers else ""
            lines.append(f"- {result.title}, {FIGURES[goal.figure].title} {verdict.ratio:.2f}{other}: {tried}.\n")
    return f"\nWhere a goal is missed:\n\n{''.join(lines)}" if lines else ""
