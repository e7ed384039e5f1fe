"""`odradek produce`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator
from typing import Final

from cli.actions import Actions
from cli.exits import FAILED
from cli.flags import JSON, PARTITION, TRANSACTIONAL_ID, Flag, duration
from cli.times import parse_time
from commands.client.links import Moments
from commands.errors import CommandError, misuse
from commands.files import STANDARD_INPUT, open_binary, read_bytes
from commands.records.input import InputRecord, InputValues, LineLayout, chunks, from_json, unescape
from commands.records.producer import ProduceOptions, RecordProducer
from commands.session import Session, assignments
from commands.state.topic_changes import create_topics
from protocol.records.compression import Compression

ACKS: Final = {"all": -1, "-1": -1, "1": 1, "0": 0}
CODECS: Final = {codec.name.lower(): codec for codec in Compression}

PROGRESS_MS: Final = 500
"""Time between two updates of the progress on a terminal."""

MORE: Final = """\
Each line of standard input, or of the files, is a value. With --json it is an object with the names of kcat's -J: key,
payload, headers (names and values in turn), partition, ts; key_base64 and payload_base64 are for bytes that
are not text. `odradek consume -o json` prints such lines."""


def declare(actions: Actions) -> None:
    actions.only(
        produce,
        concurrent=True,
        options=_options,
        examples=(
            "echo hello | odradek produce orders",
            "printf 'k1:one\\nk2:two\\n' | odradek produce orders -K : -H source=shop -z lz4",
            """echo '{"key":"k","payload":"v","headers":["a","b"]}' | odradek produce orders --json""",
            "odradek produce orders --whole README.md -k readme",
            "echo paid | odradek produce orders -p 0 --acks 1 --no-idempotence --timestamp -1h",
            "printf 'both\\nor none\\n' | odradek produce orders --transactional-id shop-1",
            "odradek produce orders -k k1 --tombstone",
        ),
        more=MORE,
    )


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("files", nargs="*", metavar="FILE", help='default "-", standard input')
    layout = parser.add_mutually_exclusive_group()
    JSON.add(layout)
    layout.add_argument("--whole", action="store_true", help="each file is one record")
    layout.add_argument("--tombstone", action="store_true", help="one record without a value, for the key of -k")
    parser.add_argument("-D", "--delimiter", default="\n", metavar="TEXT", help="between records; default: end of line")
    parser.add_argument("-K", "--key-delimiter", metavar="TEXT", help="between key and value of a line, \\t is a tab")
    Flag(("-k", "--key"), "the key of all records", "TEXT").add(parser)
    Flag(("-H", "--header"), "a header of all records", "NAME=VALUE").add(parser, repeatable=True)
    parser.add_argument("--null", action="store_true", help="an empty value is a tombstone, an empty key is null")
    PARTITION.add(parser, help="partition of all records; default: by the key's hash, as Java's clients do")
    parser.add_argument("--timestamp", metavar="TIME", help="timestamp of all records; default: now")
    parser.add_argument("-z", "--codec", choices=CODECS, default="none", help="compression; default: none")
    parser.add_argument("--acks", choices=ACKS, default="all", help="replicas that acknowledge; default: all")
    parser.add_argument("--no-idempotence", action="store_true", help="no producer id; implied by --acks 0 and 1")
    TRANSACTIONAL_ID.add(parser, help="all records are one transaction of this transactional id")
    timeout = Flag(("--transaction-timeout",), "the broker aborts the transaction after this", "DURATION", duration)
    timeout.add(parser, default="60s")
    parser.add_argument("--create", action="store_true", help="create the topic if it does not exist")


async def produce(session: Session) -> int | None:
    options = session.options
    producer = RecordProducer(session.cluster, _produce_options(options))
    if options.create:
        await _create(session)
    await producer.begin()
    committed = False
    try:
        batches, progress = _batches(session), ProduceProgress(session.cluster.clock)
        try:
            while (records := await asyncio.to_thread(next, batches, None)) is not None:
                await producer.send(options.topic, records)
                progress.show(sum(written.records for written in producer.written.values()))
        finally:
            progress.clear()
        await producer.end(commit=True)
        committed = True
    finally:
        if not committed:
            await producer.end(commit=False)
        rows = [
            {"topic": place.topic, "partition": place.partition, **written._asdict()}
            for place, written in sorted(producer.written.items())
        ]
        session.output.rows(("topic", "partition", "records", "first", "last"), rows, empty="nothing was sent")
    return None


def _produce_options(options: argparse.Namespace) -> ProduceOptions:
    acks = ACKS[options.acks]
    if options.transactional_id is not None and (acks != -1 or options.no_idempotence):
        raise misuse("--transactional-id needs --acks all and idempotence")
    return ProduceOptions(
        acks=acks,
        codec=CODECS[options.codec],
        idempotent=acks == -1 and not options.no_idempotence,
        transactional_id=options.transactional_id,
        transaction_timeout_ms=options.transaction_timeout,
    )


async def _create(session: Session) -> None:
    rows = await create_topics(
        session.cluster,
        [session.options.topic],
        partitions=-1,
        replicas=-1,
        assigned={},
        configs={},
        dry_run=False,
        if_not_exists=True,
    )
    if session.results(("topic",), [row for row in rows if row.get("error")]) == FAILED:
        raise misuse(f"--create {session.options.topic}: the topic cannot be created")


class ProduceProgress:
    """The number of records that are written, on a terminal, while the input is not typed there."""

    def __init__(self, clock: Moments) -> None:
        self._clock = clock
        self._is_shown = sys.stderr.isatty() and not sys.stdin.isatty()
        self._started_ms = self._shown_ms = clock.monotonic_ms()
        self._width = 0

    def show(self, records: int) -> None:
        """Shows the number, at most every PROGRESS_MS."""
        now_ms = self._clock.monotonic_ms()
        if not self._is_shown or now_ms - self._shown_ms < PROGRESS_MS:
            return
        self._shown_ms = now_ms
        line = f"{records} records written, {records * 1000 // (now_ms - self._started_ms)}/s"
        self._write(line.ljust(self._width))
        self._width = len(line)

    def clear(self) -> None:
        """Removes the line."""
        if self._width:
            self._write(" " * self._width)
            self._write("")

    def _write(self, line: str) -> None:
        sys.stderr.write(f"\r{line}")
        sys.stderr.flush()


def _batches(session: Session) -> Iterator[list[InputRecord] | InputValues]:
    """Yields the records of the input, in lists of the records that each read completes."""
    options = session.options
    timestamp = _timestamp(session)
    headers = tuple((name, value.encode()) for name, value in assignments(options.header, "-H").items())
    key = None if options.key is None else options.key.encode()

    def placed(record: InputRecord) -> InputRecord:
        return record._replace(
            partition=record.partition if options.partition is None else options.partition,
            timestamp=record.timestamp if timestamp is None else timestamp,
        )

    if options.tombstone:
        if key is None or options.files:
            raise misuse("--tombstone needs a key (-k), and no files")
        yield [placed(InputRecord(key, None, headers))]
        return
    separator = unescape(options.key_delimiter) if options.key_delimiter else None
    layout = LineLayout(separator, key, headers, options.null)
    delimiter = unescape(options.delimiter)
    for path in options.files or [STANDARD_INPUT]:
        if options.whole:
            yield [placed(InputRecord(key, read_bytes(path, "FILE"), headers))]
            continue
        with open_binary(path, "FILE") as file:
            before = 0
            for parts in chunks(file, delimiter):
                if not (options.json or separator or options.null):
                    yield InputValues(parts, key, headers, options.partition, timestamp)
                    continue
                records: list[InputRecord] = []
                for number, part in enumerate(parts, before + 1):
                    try:
                        if part or not options.json:
                            records.append(placed(from_json(part) if options.json else layout.record(part)))
                    except CommandError as error:
                        error.message = f"{'' if path == STANDARD_INPUT else f'{path} '}line {number}: {error.message}"
                        raise
                before += len(parts)
                yield records


def _timestamp(session: Session) -> int | None:
    if session.options.timestamp is None:
        return None
    try:
        return parse_time(session.options.timestamp, session.cluster.clock.now_ms())
    except ValueError as error:
        raise misuse(f"--timestamp: {error}") from None
