"""Measures the same large requests on Odradek and on Apache Kafka, in turns: `python -m tests.fuzz.compared`.

Each broker is a single node with its own process; a controller of Odradek has its own process, too. While one client's
request is answered, another client sends ApiVersions repeatedly. The table has its longest wait, and the processor time
of the process that decides on the request, which other work of the machine changes less; both are the median of the
rounds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from broker.handlers import APIS
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.broker_registration import BrokerRegistrationRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from protocol.schema import identity
from tests.broker.many import Many
from tests.coordinator.cluster import given
from tests.fuzz.crowding import PLACES, Place, wait_during
from tests.interop.brokers import CLUSTER_ID
from tests.interop.conformance.peers import Peer
from tests.interop.conformance.sharing import NEWEST, ShareMember, append, configure
from tests.wire import request_frame

TICKS: Final = os.sysconf("SC_CLK_TCK")
GROUP, TRANSACTION = 0, 1
FrameOf = Callable[[Place], bytes]
NODES, CONTROLLERS = ("node", "apache"), ("controller", "apache-controller")


class Row(NamedTuple):
    """A request that both brokers get."""

    what: str
    frame: FrameOf
    rights: str = "with"
    places: tuple[str, str] = NODES
    """The places of Odradek and of Apache Kafka that get it, of PLACES."""


def many(api: str, path: str, count: int, rights: str = "with", version: int | None = None) -> Row:
    """Returns the row of a request with this number of different entries in an array, in the newest version."""
    request = next(row for row in APIS if row.key.name == api)
    request_version = request.versions.last if version is None else version
    of_many = Many(request.request, request_version, tuple(path.split(".")), is_distinct=True)

    def frame(place: Place) -> bytes:
        return request_frame(of_many.build(count, place.topic_id), of_many.version)

    return Row(f"{request.request.__name__.removesuffix('Request')} of {count:,} {path}", frame, rights)


def in_transaction(place: Place) -> bytes:
    """Returns an AddPartitionsToTxn of a producer, with topics that don't exist."""
    peer = peer_of(place)
    peer.find_coordinator("transactional", TRANSACTION)
    started = InitProducerIdRequest(transactional_id="transactional", transaction_timeout_ms=60_000)
    producer: Any = peer.wait_for(started, 4, lambda answer: not answer.error_code)
    row = next(row for row in APIS if row.key.name == "ADD_PARTITIONS_TO_TXN")
    of_many = Many(row.request, 3, ("v3_and_below_topics",), is_distinct=True)
    request = of_many.build(80_000, place.topic_id)
    request.v3_and_below_producer_id = producer.producer_id
    request.v3_and_below_producer_epoch = producer.producer_epoch
    return request_frame(request, 3)


def registration(place: Place) -> bytes:
    """Returns the registration of a broker with 250,000 directories."""
    directories = [number.to_bytes(16, "big") for number in range(1000, 251_000)]
    request = given.registration(7, cluster_id=CLUSTER_ID, log_dirs=directories)
    return request_frame(request, identity(BrokerRegistrationRequest).versions.last)


def acknowledgement(count: int) -> FrameOf:
    """Returns the function for a ShareAcknowledge of one batch whose records are accepted and released alternately."""
    peers: list[Peer] = []  # Apache Kafka ends a share session with its connection

    def frame(place: Place) -> bytes:
        peers.append(peer := peer_of(place))
        group = f"sharing-{os.urandom(4).hex()}"
        configure(peer, group, share_auto_offset_reset="earliest")
        topic_id = peer.create(group)
        append(peer, group, (count,))
        peer.find_coordinator(group, GROUP)
        member = ShareMember(peer, group, topic_id, "AAAAAAAAAAAAAAAAAAAAAA")
        member.join(group)

        def acquired(answer: Any) -> Any:
            return next((rows[0] for topic in answer.responses for part in topic.partitions
                         if (rows := part.acquired_records)), None)  # fmt: skip

        rows = None
        while rows is None:
            request = member.fetch_request(max_wait_ms=500, max_records=count, batch_size=count)
            rows = acquired(peer.quietly(request, NEWEST))
            member.session_epoch += 1
        size = rows.last_offset - rows.first_offset + 1
        batch = AcknowledgementBatch(
            first_offset=rows.first_offset,
            last_offset=rows.last_offset,
            acknowledge_types=([1, 2] * count)[:size],
        )
        partition = AcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])
        request_of_all = ShareAcknowledgeRequest(
            group_id=group,
            member_id=member.name,
            share_session_epoch=member.session_epoch,
            topics=[AcknowledgeTopic(topic_id=topic_id, partitions=[partition])],
        )
        return request_frame(request_of_all, NEWEST)

    return frame


def peer_of(place: Place) -> Peer:
    return Peer("a broker", place.asked, Path())


ROWS: Final = (
    Row("ApiVersions", lambda _: request_frame(ApiVersionsRequest(), 0)),
    many("CREATE_TOPICS", "topics", 40_000, "without"),
    many("CREATE_PARTITIONS", "topics", 20_000, "without"),
    many("METADATA", "topics", 40_000, "without"),
    many("ALTER_CONFIGS", "resources", 100_000),
    many("INCREMENTAL_ALTER_CONFIGS", "resources", 100_000),
    many("DESCRIBE_USER_SCRAM_CREDENTIALS", "users", 100_000),
    many("ELECT_LEADERS", "topic_partitions", 100_000),
    many("ALTER_REPLICA_LOG_DIRS", "dirs.topics", 100_000),
    many("OFFSET_COMMIT", "topics", 50_000),
    Row("ShareAcknowledge of a batch of 20,000 records, accepted and released alternately", acknowledgement(20_000)),
    Row("AddPartitionsToTxn of 80,000 topics", in_transaction),
    many("ALTER_PARTITION_REASSIGNMENTS", "topics", 40_000),
    many("CREATE_TOPICS", "topics", 40_000),
    many("SHARE_FETCH", "topics", 20_000),
    many("CONSUMER_GROUP_HEARTBEAT", "subscribed_topic_names", 20_000),
    many("DELETE_ACLS", "filters", 20_000),
    many("FETCH", "topics", 30_000),
    many("LIST_OFFSETS", "topics", 50_000),
    Row("BrokerRegistration of 250,000 directories", registration, places=CONTROLLERS),
)


class Cost(NamedTuple):
    """The longest wait of another client, and the processor time of the broker, in seconds."""

    wait_s: float
    cpu_s: float


def cpu_s(place: Place) -> float:
    """Returns the processor time of the broker's process so far."""
    fields = Path(f"/proc/{place.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def cost(place: Place, row: Row) -> Cost:
    frame = row.frame(place)
    before_s = cpu_s(place)
    wait = wait_during(place, frame, row.rights, f"{row.what}, {len(frame)} bytes")
    taken = Cost(wait.longest_s, cpu_s(place) - before_s)
    print(wait, f"{taken.cpu_s:.2f} s of CPU", file=sys.stderr, flush=True)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.compared", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="only these rows, by parts of their names: Fetch of,Metadata")
    options = parser.parse_args()
    parts = options.only.split(",")
    for line in table([row for row in ROWS if any(part in row.what for part in parts)], options.rounds):
        print(line, flush=True)


def table(rows: list[Row], rounds: int) -> Iterator[str]:
    """Yields the lines of the table."""
    commit = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=True)
    began = os.getloadavg()[0]
    yield "| request | rights | others wait, s: Odradek | Apache Kafka | ratio | CPU, s: Odradek | Apache Kafka |"
    yield "|---|---|---|---|---|---|---|"
    for names in dict.fromkeys(row.places for row in rows):
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            places = [stack.enter_context(PLACES[name](Path(folder, name))) for name in names]
            if names is NODES:
                for place in places:
                    peer_of(place).find_coordinator("group", GROUP)
            for row in rows:
                if row.places is names:
                    yield line_of(row, places, rounds)
    yield ""
    yield (
        f"Commit {commit.stdout.strip()}, {rounds} rounds, {os.cpu_count()} cores, load of the machine "
        f"{began:.1f} to {os.getloadavg()[0]:.1f}."
    )


def line_of(row: Row, places: list[Place], rounds: int) -> str:
    """Returns the line of a request, which each place gets in each round."""
    costs = [[cost(place, row) for place in places] for _ in range(rounds)]
    ours, theirs = (
        Cost(median(one.wait_s for one in of_place), median(one.cpu_s for one in of_place))
        for of_place in zip(*costs, strict=True)
    )
    return (
        f"| {row.what} | {row.rights} | {ours.wait_s:.3f} | {theirs.wait_s:.3f} | "
        f"{ours.wait_s / theirs.wait_s:.1f} | {ours.cpu_s:.2f} | {theirs.cpu_s:.2f} |"
    )


if __name__ == "__main__":
    main()
