"""The tools that load a broker: Apache Kafka's own, and librdkafka's through confluent-kafka; and the parsers of their
output.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from bench import jars
from bench.figures import ToolResult
from bench.load import Tool, ToolRun, module
from bench.payload import compressed_share, payload_file

PRODUCED = re.compile(
    r"^(?P<records>\d+) records sent, (?P<rate>[\d.,]+) records/sec .*?(?P<mean>[\d.]+) ms avg latency"
    r".*?(?P<p50>\d+) ms 50th.*?(?P<p99>\d+) ms 99th, (?P<p999>\d+) ms 99\.9th",
    re.MULTILINE,
)
MEAN = re.compile(r"^Avg latency: ([\d.]+) ms", re.MULTILINE)
MIB = 1 << 20


class BadOutput(Exception):
    """A tool ended without an error, but without its usual output."""


def pairs(flag: str, properties: tuple[str, ...]) -> list[str]:
    return [word for text in properties for word in (flag, text)]


def producer_performance(job: ToolRun, *extra: str) -> list[str]:
    load = job.load
    return jars.tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--bootstrap-server", job.bootstrap, "--topic", job.topic),
        *("--num-records", str(load.records), "--throughput", str(load.rate or -1)),
        *("--payload-file", str(payload_file(job.work, load.payload, load.record_bytes))),
        *(("--command-property", *load.client) if load.client else ()),
        *extra,
    )


def parse_producer_performance(output: str, job: ToolRun) -> ToolResult:
    """Parses the line of totals. Its latencies are from send to acknowledgement, in whole milliseconds."""
    totals = list(PRODUCED.finditer(output))
    if not totals:
        raise BadOutput(f"no line of totals in {output[-500:]!r}")
    total = totals[-1]
    records = int(total["records"])
    latencies = {f"{key}_ms": float(total[key]) for key in ("mean", "p50", "p99", "p999")}
    return ToolResult(
        records, records * job.load.record_bytes, records / float(total["rate"].replace(",", "")), latencies
    )


def group_of(job: ToolRun) -> str:
    return f"{job.topic}-{job.number}"


def consumer_performance(job: ToolRun) -> list[str]:
    return jars.tool(
        "org.apache.kafka.tools.ConsumerPerformance",
        *("--bootstrap-server", job.bootstrap, "--topic", job.topic, "--num-records", str(job.load.records)),
        *("--group", group_of(job), *pairs("--command-property", job.load.client)),
    )


def rows(output: str) -> Iterator[dict[str, str]]:
    """Yields the lines of comma-separated values after the last header, as dicts by the header's names."""
    names: list[str] = []
    for line in output.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if cells[0] == "start.time":
            names = cells
        elif names and len(cells) == len(names):
            yield dict(zip(names, cells, strict=True))


def parse_consumer_performance(output: str, job: ToolRun) -> ToolResult:
    """Parses the row of totals. The time is that of fetching, without waiting for the group."""
    try:
        *_others, total = rows(output)
        records, mib = int(total["data.consumed.in.nMsg"]), float(total["data.consumed.in.MB"])
        seconds = int(total["fetch.time.ms"]) / 1000
    except (KeyError, ValueError) as error:
        raise BadOutput(f"no row of totals in {output[-500:]!r}") from error
    if records < job.load.records:
        raise BadOutput(f"{records} of {job.load.records} records arrived")
    return ToolResult(records, round(mib * MIB), seconds)


def share_consumer_performance(job: ToolRun) -> list[str]:
    """Returns the command line. Its consumers are threads. The tool gives up after ten seconds unless an option sets
    another timeout.
    """
    return jars.tool(
        "org.apache.kafka.tools.ShareConsumerPerformance",
        *("--bootstrap-server", job.bootstrap, "--topic", job.topic, "--group", group_of(job)),
        *("--num-records", str(job.load.records), "--threads", str(job.load.clients), "--timeout", "120000"),
    )


def share_from_start(job: ToolRun) -> list[str]:
    """Returns the command that makes a share group start at the beginning of a topic, by a group config."""
    return jars.tool(
        "kafka.admin.ConfigCommand",
        *("--bootstrap-server", job.bootstrap, "--alter", "--entity-type", "groups", "--entity-name", group_of(job)),
        *("--add-config", "share.auto.offset.reset=earliest"),
    )


def end_to_end_latency(job: ToolRun) -> list[str]:
    load = job.load
    return jars.tool(
        "org.apache.kafka.tools.EndToEndLatency",
        *("--bootstrap-server", job.bootstrap, "--topic", job.topic, "--num-records", str(load.records)),
        *("--producer-acks", load.properties.get("acks", "all"), "--record-size", str(load.record_bytes)),
    )


def parse_end_to_end_latency(output: str, job: ToolRun) -> ToolResult:
    """Parses only the mean, because the tool truncates percentiles to whole milliseconds, and a good broker's are below
    one.
    """
    match = MEAN.search(output)
    if not match:
        raise BadOutput(f"no average in {output[-500:]!r}")
    mean_ms = float(match[1])
    return ToolResult(job.load.records, job.load.size_bytes, job.load.records * mean_ms / 1000, {"mean_ms": mean_ms})


def librdkafka(name: str, verb: str, job: ToolRun) -> list[str]:
    load = job.load
    return module(
        f"bench.clients.{name}",
        *(verb, job.bootstrap, job.topic, str(payload_file(job.work, load.payload, load.record_bytes))),
        *("--records", str(load.records), "--record-bytes", str(load.record_bytes)),
        *("--clients", str(load.clients), "--partitions", str(load.partitions), "--rate", str(load.rate)),
        *pairs("--set", load.client),
    )


def pump(job: ToolRun) -> list[str]:
    load = job.load
    assert load.flow is not None
    written_by = load.filled_by or load
    share = compressed_share(payload_file(job.work, load.payload, load.record_bytes), written_by.properties)
    return module(
        "bench.floor.pump",
        *(job.bootstrap, load.flow.value, job.topic, str(load.chunk_bytes)),
        *(str(round(load.size_bytes * share)), str(load.clients)),
    )


def parse_pump(output: str, job: ToolRun) -> ToolResult:
    """Parses the floor's chunks as the number of records that they stand for, and the bytes of their values before
    compression.
    """
    moved = parse_json(output, job)
    records = job.load.records * job.load.clients
    return moved._replace(records=records, size_bytes=records * job.load.record_bytes)


def parse_json(output: str, _: ToolRun) -> ToolResult:
    """Parses the last line of a loop of the bench: a ToolResult as JSON."""
    try:
        return ToolResult(**json.loads(output.splitlines()[-1]))
    except (IndexError, ValueError, TypeError) as error:
        raise BadOutput(f"no JSON at the end of {output[-500:]!r}") from error


def of_librdkafka(verb: str) -> Tool:
    return Tool(f"confluent-kafka: {verb}", lambda job: librdkafka("librdkafka", verb, job), parse_json)


def in_transactions(verb: str) -> Tool:
    """Returns librdkafka's tool for transactions."""
    name = f"confluent-kafka, in transactions: {verb}"
    return Tool(name, lambda job: librdkafka("transactions", verb, job), parse_json)


WORD_COUNT_SOURCE = Path(__file__).parent / "clients" / "WordCount.java"


def word_count(job: ToolRun) -> list[str]:
    where = job.bootstrap, job.topic, group_of(job)
    return jars.streams_program(WORD_COUNT_SOURCE, *where, str(job.load.records))


def transactional(duration_ms: int) -> Tool:
    """Returns ProducerPerformance that commits a transaction at fixed intervals."""

    def command(job: ToolRun) -> list[str]:
        return producer_performance(job, "--transactional-id", job.topic, "--transaction-duration-ms", str(duration_ms))

    return Tool(f"ProducerPerformance, transactions of {duration_ms:,} ms", command, parse_producer_performance)


PRODUCER_PERFORMANCE = Tool("ProducerPerformance", producer_performance, parse_producer_performance)
WORD_COUNT = Tool("Kafka Streams: word count", word_count, parse_json)
CONSUMER_PERFORMANCE = Tool("ConsumerPerformance", consumer_performance, parse_consumer_performance)
SHARE_CONSUMER_PERFORMANCE = Tool(
    "ShareConsumerPerformance", share_consumer_performance, parse_consumer_performance, share_from_start
)
END_TO_END_LATENCY = Tool("EndToEndLatency", end_to_end_latency, parse_end_to_end_latency)


def by_hand(verb: str) -> Tool:
    """Returns the tool whose group members use plain sockets."""

    def command(job: ToolRun) -> list[str]:
        where = job.bootstrap, job.topic, group_of(job)
        sizes = "--records", str(job.load.records), "--clients", str(job.load.clients)
        return module("bench.clients.groups", verb, *where, *sizes)

    return Tool(f"sockets: {verb}", command, parse_json)


PRODUCE, CONSUME, LATENCY, JOIN, COMMIT = map(of_librdkafka, ("produce", "consume", "latency", "join", "commit"))
COMMIT_TRANSACTIONS, COMMITTED_LATENCY, HALF_ABORTED = map(in_transactions, ("commit", "latency", "half-aborted"))
HEARTBEATS, COMMITS, GROUPS, JOIN_MANY = map(by_hand, ("heartbeats", "commits", "groups", "join"))
PUMP = Tool("pump", pump, parse_pump)
