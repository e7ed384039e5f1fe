"""Clients that cost so little that one core of them keeps a broker's core busy.

    python -m bench.clients.flood HOST:PORT TOPIC produce|consume SECONDS

There is one connection to each partition's leader. A producer sends the same batch of 64 KB again and again, with
several requests in flight. A consumer fetches a megabyte at a time, and starts again at the end. Values are not read.
The requests have the versions of current clients: Produce 9, Fetch 12.

Prints JSON: bytes of batches, seconds.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Final, NamedTuple

import crc32c

from bench import wire
from client.address import Address
from client.blocking import BlockingPeer
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

PRODUCE, FETCH = 0, 1
OFFSET_OUT_OF_RANGE: Final = 1
EARLIEST: Final = -2
VALUE_BYTES: Final = 1_000
RECORDS: Final = 64
IN_FLIGHT: Final = 5
FETCH_BYTES: Final = 1 << 20
WAIT_MS: Final = 500
SIZE_BYTES: Final = 4
PRODUCE_ERROR_AT: Final = 4 + 1 + 1
"""Bytes of a Produce 9 response before the topic's name, for one partition: correlation id, tags, number of topics."""
FETCH_ERROR_AT: Final = 4 + 1 + 4 + 2 + 4 + 1
"""Bytes of a Fetch 12 response before the topic's name: also the throttle time, the top-level error and the session."""
BEHIND_NAME: Final = 1 + 4
"""Bytes after the name: the number of partitions and the index of the first; its error code follows."""


class Leader(NamedTuple):
    """A partition and the address of its leader."""

    partition: int
    address: str


class FloodRefused(Exception):
    """The broker answered with an error code."""


def varint(value: int) -> bytes:
    """Returns a signed varint, as records have it."""
    return uvarint((value << 1) ^ (value >> 63))


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def compact(data: bytes) -> bytes:
    return uvarint(len(data) + 1) + data


def record(number: int) -> bytes:
    value = bytes([65 + number % 26]) * VALUE_BYTES
    body = b"\0" + varint(0) + varint(number) + varint(-1) + varint(VALUE_BYTES) + value + varint(0)
    return varint(len(body)) + body


def batch(now_ms: int) -> bytes:
    """Returns a batch of magic 2 with RECORDS records."""
    records = b"".join(map(record, range(RECORDS)))
    checked = struct.pack(">hiqqqhii", 0, RECORDS - 1, now_ms, now_ms, -1, -1, -1, RECORDS) + records
    rest = struct.pack(">ibI", -1, 2, crc32c.crc32c(checked)) + checked
    return struct.pack(">qi", 0, len(rest)) + rest


def flexible(api_key: int, version: int, body: bytes) -> bytes:
    """Returns a frame with request header v2: header v1 with tags."""
    return wire.request(api_key, version, b"\0" + body)


def produce_request(topic: str, partition: int, records: bytes) -> bytes:
    written = struct.pack(">i", partition) + compact(records) + b"\0"
    topics = uvarint(2) + compact(topic.encode()) + uvarint(2) + written + b"\0"
    return flexible(PRODUCE, 9, b"\0" + struct.pack(">hi", 1, 30_000) + topics + b"\0")


def fetch_request(topic: str, partition: int, offset: int) -> bytes:
    limits = struct.pack(">iiiibii", -1, WAIT_MS, 1, FETCH_BYTES, 0, 0, -1)
    read = struct.pack(">iiqiqi", partition, -1, offset, -1, -1, FETCH_BYTES) + b"\0"
    topics = uvarint(2) + compact(topic.encode()) + uvarint(2) + read + b"\0"
    return flexible(FETCH, 12, limits + topics + uvarint(1) + compact(b"") + b"\0")


def start_offset(broker: BlockingPeer, topic: str, partition: int) -> int:
    """Returns the first offset of a partition."""
    named = ListOffsetsPartition(partition_index=partition, timestamp=EARLIEST)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[named])])
    answer = broker.ask(request, ListOffsetsResponse, timeout_ms=wire.IO_TIMEOUT_MS).topics[0].partitions[0]
    if answer.error_code:
        raise FloodRefused(f"ListOffsets was answered with error code {answer.error_code}")
    return answer.offset


def leaders(bootstrap: str, topic: str) -> Iterator[Leader]:
    """Yields the partitions of a topic."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    with closing(wire.peer(bootstrap)) as broker:
        answer = broker.ask(request, MetadataResponse, timeout_ms=wire.IO_TIMEOUT_MS)
    brokers = {broker.node_id: str(Address(broker.host, broker.port)) for broker in answer.brokers}
    for partition in answer.topics[0].partitions:
        if partition.error_code:
            raise FloodRefused(f"partition {partition.partition_index} has error code {partition.error_code}")
        yield Leader(partition.partition_index, brokers[partition.leader_id])


def answer(connection: socket.socket, buffer: bytearray) -> int:
    """Reads an answer into the buffer; returns its size."""
    (size,) = struct.unpack(">i", wire.receive(connection, SIZE_BYTES))
    if connection.recv_into(buffer, size, socket.MSG_WAITALL) != size:
        raise ConnectionError("the broker closed the connection")
    return int(size)


def produce(connection: socket.socket, topic: str, leader: Leader, until: float) -> int:
    """Produces until a time; returns the bytes of batches that were acknowledged."""
    partition = leader.partition
    records = batch(int(time.time() * 1000))
    request, buffer, sent, taken = produce_request(topic, partition, records), bytearray(4096), 0, 0
    error_at = PRODUCE_ERROR_AT + len(compact(topic.encode())) + BEHIND_NAME
    while taken < sent or time.monotonic() < until:
        while sent < taken + IN_FLIGHT and time.monotonic() < until:
            connection.sendall(request)
            sent += 1
        if taken < sent:
            answer(connection, buffer)
            (error,) = struct.unpack_from(">h", buffer, error_at)
            if error:
                raise FloodRefused(f"Produce was answered with error code {error}")
            taken += 1
    return taken * len(records)


def consume(connection: socket.socket, topic: str, leader: Leader, until: float) -> int:
    """Consumes until a time; returns the bytes of whole batches that were received."""
    partition, broker = leader.partition, wire.peer(leader.address)
    size, buffer, taken = len(batch(0)), bytearray(2 * FETCH_BYTES), 0
    offset = start_offset(broker, topic, partition)
    error_at = FETCH_ERROR_AT + len(compact(topic.encode())) + BEHIND_NAME
    while time.monotonic() < until:
        connection.sendall(fetch_request(topic, partition, offset))
        batches = answer(connection, buffer) // size
        (error,) = struct.unpack_from(">h", buffer, error_at)
        if error not in (0, OFFSET_OUT_OF_RANGE):
            raise FloodRefused(f"Fetch was answered with error code {error}")
        # starts again at the end of the partition, or if retention has deleted the records
        offset = offset + batches * RECORDS if batches else start_offset(broker, topic, partition)
        taken += batches * size
    broker.close()
    return taken


FLOWS: dict[str, Callable[[socket.socket, str, Leader, float], int]] = {"produce": produce, "consume": consume}


def main(bootstrap: str, topic: str, flow: str, seconds: str) -> None:
    began = time.monotonic()

    def run(leader: Leader) -> int:
        with wire.connect(leader.address) as connection:
            connection.settimeout(None)  # with a timeout, MSG_WAITALL would not wait
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return FLOWS[flow](connection, topic, leader, began + float(seconds))

    partitions = list(leaders(bootstrap, topic))
    with ThreadPoolExecutor(len(partitions)) as pool:
        size_bytes = sum(pool.map(run, partitions))
    print(json.dumps({"size_bytes": size_bytes, "seconds": time.monotonic() - began}))


if __name__ == "__main__":
    main(*sys.argv[1:])
