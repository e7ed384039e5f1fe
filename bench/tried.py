"""What was tried for each goal that is missed, what each try gave, and what the limit is. Pure.

The tables of docs/benchmarks.md list these texts below the goals that are missed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from bench.figures import FIGURES
from bench.goals import ITS_YOUTH, LIMIT, OURS, GoalVerdict, verdicts
from bench.results import LoadResult

SENDFILE: Final = (
    "the kernel takes 0.95 of it, for the copy into the socket and the pages of the mapped file. The floor, which "
    "sends the same bytes from a mapped file without a protocol, took 0.25 CPU-s/GB on an earlier day, 0.80 of Apache "
    "Kafka's, and Odradek beside it 0.23: to send mapped pages can't reach the goal. `sendfile` avoids the copy, but "
    "costs more on loopback, because it sends page by page and wakes the reader for each piece: with librdkafka on an "
    "idle machine it took 0.64 CPU-s/GB against 0.37, while the client read 1.4 times as fast (six rounds). Bare loops "
    "that send a gigabyte from memory took 0.24 CPU-s/GB from a mapped file, 0.28 through a buffer of a megabyte and "
    "0.35 by `sendfile` (medians of six)"
)
CONSUME_LZ4: Final = (
    "the client decompresses, and both brokers wait for it: rounds of 92 to 118 MB/s on an Intel Xeon, and of 92 to "
    "120 MB/s of Apache Kafka"
)
SHARE: Final = (
    "a plain Fetch of the same records costs 0.35 of it; the rest is the work of a share group: 0.31 acknowledges and "
    "writes the state to its topic, 0.12 acquires (`perf`). Ranges of offsets end to end, and fewer objects for a "
    "fetch and its acknowledgement, are in it already. A warm JVM does that work for a fifth of its first round's "
    "cost. The clients' JVM uses most of the two cores, and each round includes the seconds of joining, which grow "
    "with the number of members"
)
COORDINATOR: Final = (
    "the kernel takes nearly half of it (`perf`): a `read` and a `write` for each request, and a wait for each commit "
    "that comes alone. What each try gave, of the CPU time: an interpreter with profile-guided optimization 0.87 for "
    "heartbeats, 0.92 for commits of 100 members, 0.79 for commits one by one (six rounds); handlers that wait run "
    "without a task, 0.92 for commits of 100 members (three rounds); the handler of heartbeats and its decision "
    "compiled, and link-time optimization of the compiled core, nothing (76 and 78 µs, 74 and 75 µs a heartbeat on a "
    "slower machine, medians of three and seven). A heartbeat makes 22 interpreted calls and a commit 45. With most of "
    "them compiled both took 0.92 (23.0 instead of 25.0 µs, 49.8 instead of 54.3 µs, on an Intel Xeon, medians of "
    "six): not kept, because `protocol/lazy.py` doesn't work in compiled modules, so that a start imported more and "
    "the idle memory was 44.6 MB instead of 38.5. The latency of commits one by one is that of the client's threads, "
    "which wake up twice for each"
)
TLS_PRODUCE: Final = (
    "OpenSSL decrypts each TLS record in a call of its own. librdkafka sends a quarter of its records as two TLS "
    "records of 1,000 and of 10 bytes, so that a gigabyte is 550,000 TLS records. By `perf`, OpenSSL takes 0.28 of the "
    "broker's CPU time, the kernel 0.24, the C library's copies 0.16 and the interpreter 0.25. Buffers that are kept "
    "between requests took it from 1.48 of Apache Kafka's CPU time to 0.94 on an earlier day. A compiled TLS transport "
    "made no measurable difference (3.2 and 3.3 CPU-s/GB more than without TLS, medians of four pairs). TLS in the "
    "kernel needs a module that this machine's kernel doesn't have, and Python's `ssl` has no call that reads several "
    "TLS records"
)
TLS_CONSUME: Final = (
    "encryption itself (AES-256-GCM, 5.0 GB/s by `openssl speed`) takes 0.20 CPU-s/GB and the same records without TLS "
    "0.25, together 0.43 of Apache Kafka's: a broker that encrypts outside of the kernel can't reach the goal. TLS in "
    "the kernel needs a module that this machine's kernel doesn't have. Pieces of 64 KB are encrypted one by one, and "
    "written together"
)
CLUSTER_PRODUCE: Final = (
    "by `perf`, a third of the brokers' CPU time is `pwrite`, nearly all of it the kernel's copy, and a tenth the "
    "copies of sockets. Requests that overlap on a connection took Java's defaults from 46.0 to 22.2 CPU-s/GB, and "
    "batches of 64 KB from 19.0 to 12.1 on a busy machine; settled partitions and kept buffers came since. Followers' "
    "fetches that also wait up to 2 ms for more records while a producer waits took 10.0 and 11.5 instead of 11.8 and "
    "12.1 CPU-s/GB with Java's defaults, 6.3 and 6.6 instead of 6.6 and 6.8 with batches of 64 KB (two runs of each on "
    "an Intel Xeon, with no other cluster beside it): not kept, because it would delay a producer that waits for "
    "each record"
)
WORD_COUNT: Final = (
    "five rounds decide, and a round is of one of two kinds by chance, with either broker. Of 28 rounds of two runs, "
    "without each broker's first, eight of each broker have 4,400 to 5,500 lines a second, and the others 6,500 to "
    "10,600; the medians are 9,000 and 7,280 of Apache Kafka, a ratio of 1.24"
)
CLUSTER_WORD_COUNT: Final = (
    "three rounds decide, and a round is of one of two kinds by chance, with either broker. Of 18 rounds of two runs, "
    "warm-up included, Odradek's seven slow ones had 4,300 to 5,000 lines a second and the others 6,400 to 8,400; the "
    "medians are 7,180 and 5,090 of Apache Kafka, a ratio of 1.41"
)
FOLLOWER: Final = (
    "by `perf`, half of a follower's CPU time writes to the page cache and a fifth is the kernel's socket code; a "
    "quarter is the interpreter's. Pauses between fetches of up to five milliseconds (1.2 instead of 1.6 s/GB in user "
    "mode) and one `pwrite` for batches that arrive together are in it already"
)
TRIED: Final[Mapping[tuple[str, str], str]] = {
    ("start-up", LIMIT): (
        "two thirds of it are imports of 480 modules (`-X importtime`), of which asyncio's are a seventh, and a tenth "
        "is the bare interpreter. Messages, handlers, shards and their decisions are imported with the first request "
        "that needs them. An interpreter with profile-guided optimization took 0.78 of the time"
    ),
    ("produce", "floor"): "the cost above the floor is the protocol, and the check of every record",
    ("produce", "kafka"): (
        "the kernel takes three quarters of it, and so 0.33 of Apache Kafka's CPU time: a `pwrite`, a `write`, a "
        "`read` and a wait for each batch of 16 KB. An interpreter with profile-guided optimization took it to 0.92 of "
        "the CPU time (six rounds)"
    ),
    ("produce-idempotent", "kafka"): (
        "as above: the kernel's work for each batch. Up to six batches share a request, which saves 0.37 of Apache "
        "Kafka's CPU time and 0.28 of Odradek's"
    ),
    ("produce-lz4", "kafka"): (
        "a quarter of it inflates the records for their check, half of that in liblz4; a fifth is `pwrite` and "
        "indexes, a seventh answers. The check itself is 2 %. A buffer that need not grow, and a heap that keeps its "
        "pages (glibc's mallopt), made no measurable difference: 3.86 and 3.97 CPU-s/GB, and 3.88 without the heap, on "
        "a day when Apache Kafka took 5.34. The client compresses on the same two cores, so that the throughput "
        "depends on it too"
    ),
    ("produce-unbatched", "kafka"): (
        "Odradek took 13.9 CPU-s per million in two runs, Apache Kafka 38.5 in this one and 41.0 in the other, in "
        "which the ratio was 0.34. The kernel takes six tenths of it: a `pwrite`, a `write` and a `read` for each "
        "record. Without the three interpreted calls of an append it took the same (22.6 and 22.5 µs on an Intel "
        "Xeon, medians of eight). The latency is the time that a record waits in the client's buffer of 32 MB, which "
        "is full for most of the run. So it follows the throughput, in which the client's own CPU time has the larger "
        "part"
    ),
    **{(load, "kafka"): COORDINATOR for load in ("offset-commits", "group-commits", "group-heartbeats")},
    **{(load, "kafka-tls"): TLS_PRODUCE for load in ("produce", "produce-librdkafka")},
    **{
        (f"cluster-{row}", "kafka"): CLUSTER_PRODUCE
        for row in ("produce", "produce-defaults", "transactions-100ms", "transactions-1000ms")
    },
    ("long-run", ITS_YOUTH): (
        "but for one of 2.06 the rounds cost 1.50 to 1.66 CPU-s/GB, and the medians of both halves are 1.60 and 1.62. "
        "The second, with which the last two are compared, is the cheapest. The memory is 23.4 MB from the first round "
        "to the last"
    ),
    ("streams-word-count", "kafka"): WORD_COUNT,
    ("cluster-streams-word-count", "kafka"): CLUSTER_WORD_COUNT,
    ("cluster-follow", "kafka"): FOLLOWER,
    ("consume", "kafka"): SENDFILE,
    ("consume", "kafka-tls"): TLS_CONSUME,
    ("consume-lz4", "kafka"): CONSUME_LZ4,
    ("consume-share", "kafka"): SHARE,
    ("consume-share-4", "kafka"): SHARE,
    ("consume-share-16", "kafka"): SHARE,
    ("latency", "kafka"): (
        "most of it are two wake-ups of the client's threads and two passes through the kernel's loopback, the same "
        "for both brokers. In two runs the ratios were 0.49 and 0.51 at p50, 0.51 and 0.60 at p99. The broker itself "
        "takes 46 µs of CPU time for a record, Apache Kafka 190"
    ),
}
"""Reasons why a goal is missed, and what was tried, by load and by the peer that it is compared with."""


def missed(results: Sequence[LoadResult], ours: str = OURS, *, above: Collection[LoadResult] = ()) -> str:
    """Returns a list of the goals that the peer `ours` misses, with what was tried for them. Goals with the same text
    are in one entry. What `above` misses is in an earlier list of the page, and isn't repeated."""
    listed = {(result.load, verdict.goal) for result, verdict in missed_goals(above)}
    texts = {TRIED.get((load, goal.other)) for load, goal in listed}
    goals = dict[str, list[str]]()
    for result, verdict in missed_goals(results):
        goal = verdict.goal
        tried = TRIED.get((result.load, goal.other))
        if goal.ours != ours or tried is None or (result.load, goal) in listed:
            continue
        other = f" of {result.peers[goal.other].title}" if goal.other in result.peers else ""
        name = f"{result.title}, {FIGURES[goal.figure].title} {verdict.ratio:.2f}{other}"
        goals.setdefault("as above" if tried in texts else tried, []).append(name)
    entries = "".join(f"- {'; '.join(names)}: {tried}.\n" for tried, names in goals.items())
    return f"\nWhere a goal is missed:\n\n{entries}" if entries else ""


def missed_goals(results: Iterable[LoadResult]) -> Iterator[tuple[LoadResult, GoalVerdict]]:
    """Yields the goals that are missed, each with the results of its load."""
    for result in results:
        for verdict in verdicts(result.load, result.figures, result.peers):
            if not verdict.reached:
                yield result, verdict
