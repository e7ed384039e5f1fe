"""The records of a topic: a page of them, a search, a live tail, one record, a download, and a new record."""

from __future__ import annotations

import shlex
from base64 import b64decode
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Final

from starlette.responses import Response, StreamingResponse

from commands.errors import misuse
from commands.printing import Row, as_json
from commands.records.input import InputRecord
from commands.records.output import PrintedRecord, as_row
from commands.records.positions import (
    END,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Position,
    parse_position,
    resolve,
)
from commands.records.producer import ProduceOptions, RecordProducer
from console.changes import Plan
from console.filters import PATH_HELP, filter_of
from console.pages.topics import topic_head
from console.reading import NAMES, checked_name
from console.records import AUTO, DECODERS, MAX_SHOWN, Opened, ShownRecord, decode, internal_text, is_internal, row_of
from console.rendering import address, event
from console.scanning import RecordQuery, RecordScan, one_record
from console.tailing import MAX_BEHIND, TailStart, read_mark
from console.visit import PageRequest
from console.watching import UNREADABLE, reason_of
from protocol.records.record import Record
from protocol.types import TopicPartition

LIMITS: Final = (20, 50, 100, 500)
MAX_EXPORT: Final = 1_000_000
"""Records of one download."""

PARAMETERS: Final = (
    "order", "from", "partitions", "limit", "isolation", "decode", "key", "value", "header", "json", "live"
)  # fmt: skip
ISOLATION: Final = {"committed": READ_COMMITTED, "all": READ_UNCOMMITTED}
EVENT_MS: Final = 250
"""Pause between two reports of progress."""


async def listing(visit: PageRequest) -> Response:
    topic, head = await topic_head(visit, "records")
    given = {name: visit.query(name) for name in PARAMETERS}
    question = _question(visit, [part.partition_index for part in topic.partitions])
    name = topic.name or ""
    is_live = bool(given.get("live"))
    is_search = bool(question.filter) and not is_live
    values = {
        **head,
        "given": given,
        "limits": LIMITS,
        "decoders": NAMES,
        "help": PATH_HELP,
        "is_live": is_live,
        "is_search": is_search,
        "stream": address(f"/live/records/{name}", **given),
        "export": address(f"/topics/{name}/export", **given),
        "is_masked": bool(visit.terms.opener.masks),
        "commands": _commands(visit, name, given, question),
        "records": [],
        "progress": None,
    }
    if not is_live and not is_search:
        found: list[ShownRecord] = []
        async with aclosing(_scan(visit, question).run()) as parts:
            async for part in parts:
                found += part.records
                values["progress"] = part
        values["records"] = [row_of(record, question.decode) for record in found]
    return visit.render("topic_records.html", values)


async def live(visit: PageRequest) -> Response:
    """Returns the events of a search, or of a live tail."""
    topic = await visit.cluster.topic(visit.path("topic"))
    question = _question(visit, [part.partition_index for part in topic.partitions])
    if not visit.query("live"):
        return visit.stream(_search(visit, question))
    return visit.stream(
        visit.terms.tails.follow(visit.watched, question, await _start(visit, question, topic.topic_id))
    )


async def _start(visit: PageRequest, question: RecordQuery, topic_id: bytes) -> TailStart:
    """Returns where a tail begins: where the browser lost it, else at the position of the URL, else at the end."""
    mark = visit.request.headers.get("last-event-id", "") or visit.query("after")
    positions = read_mark(mark, topic_id, question.places)
    lookup = await resolve(
        visit.cluster, positions or dict.fromkeys(question.places, question.start or END), question.isolation
    )
    return TailStart(topic_id, lookup.offsets, MAX_BEHIND if positions else None)


async def _search(visit: PageRequest, question: RecordQuery) -> AsyncGenerator[str, None]:
    clock, shown_ms = visit.watched.clock, 0
    try:
        async with aclosing(_scan(visit, question).run()) as parts:
            async for part in parts:
                if part.records:
                    rows = [row_of(record, question.decode) for record in part.records]
                    yield event("records", visit.text("records_rows.html", {"records": rows}))
                if part.is_done or clock.monotonic_ms() - shown_ms >= EVENT_MS:
                    shown_ms = clock.monotonic_ms()
                    yield event("progress", visit.text("records_progress.html", {"progress": part}))
    except UNREADABLE as error:  # if the stream broke off, the browser would begin again
        yield event("progress", visit.text("records_fault.html", {"fault": reason_of(error)}))
    yield event("done", "")


def _scan(visit: PageRequest, question: RecordQuery) -> RecordScan:
    return RecordScan(visit.cluster, question, visit.terms.opener)


def _question(visit: PageRequest, indexes: Sequence[int], *, is_stream: bool = False) -> RecordQuery:
    """Returns what the URL asks for. Raises CommandError."""
    topic, start = visit.path("topic"), visit.query("from")
    isolation, order = visit.query("isolation", "committed"), visit.query("order", "newest")
    if isolation not in ISOLATION:
        raise misuse(f"isolation {isolation[:40]}: expected {' or '.join(ISOLATION)}")
    if order not in ("newest", "oldest"):
        raise misuse(f"order {order[:40]}: expected newest or oldest")
    limit = visit.number(
        "limit", MAX_EXPORT if is_stream else 50, least=1, most=MAX_EXPORT if is_stream else LIMITS[-1]
    )
    return RecordQuery(
        [TopicPartition(topic, index) for index in _partitions(visit.query("partitions"), indexes)],
        ISOLATION[isolation],
        _position(visit, start) if start else None,
        order == "newest" and not is_stream,
        limit,
        filter_of(visit.request.query_params),
        checked_name(visit.query("decode", AUTO)),
        is_stream,
    )


def _position(visit: PageRequest, text: str) -> Position:
    try:
        return parse_position(text, visit.cluster.clock.now_ms())
    except ValueError as error:
        raise misuse(f"from: {error}") from None


def _partitions(text: str, indexes: Sequence[int]) -> Sequence[int]:
    """Returns the partitions of a list such as "0,2"; all if it is empty. Raises CommandError."""
    if not text:
        return indexes
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdecimal() and len(word) < 10 for word in words):
        raise misuse(f"partitions {text[:40]}: expected numbers such as 0,2")
    chosen = sorted({int(word) for word in words})
    if missing := sorted(set(chosen) - set(indexes)):
        raise misuse(f"partition {missing[0]}: the topic has partitions 0 to {len(indexes) - 1}")
    return chosen


def _commands(visit: PageRequest, topic: str, given: dict[str, str], question: RecordQuery) -> list[str]:
    """Returns the command lines that read the same records, without filters, which they leave to grep."""
    bootstrap = visit.terms.cluster_name.replace(" ", "")
    start = given.get("from") or ("end" if given.get("live") else "start")
    if question.is_newest_first and not given.get("live"):
        start = f"-{question.limit}"
    parts = given.get("partitions", "").replace(" ", "").split(",") if given.get("partitions") else []
    ours = ["odradek", "consume", topic, "-b", bootstrap, "--from", start]
    ours += [word for index in parts for word in ("-p", index)]
    ours += [] if given.get("live") else ["-n", str(question.limit), "--exit-at-end"]
    theirs = ["kcat", "-b", bootstrap, "-C", "-t", topic, *(("-p", parts[0]) if len(parts) == 1 else ())]
    offset = {"start": "beginning", "end": "end"}.get(start, start)
    theirs += ["-o", offset, *(() if given.get("live") else ("-c", str(question.limit), "-e"))]
    return [shlex.join(ours)] + ([] if start.startswith(("@", "+")) else [shlex.join(theirs)])


# One record.


async def record(visit: PageRequest) -> Response:
    topic, head = await topic_head(visit, "records")
    place = _place(visit, len(topic.partitions))
    offset = _path_number(visit, "offset")
    name = checked_name(visit.query("decode", AUTO))
    shown = await one_record(visit.cluster, place, offset, visit.terms.opener, name)
    values = {**head, "place": place, "offset": offset, "decode": name, "decoders": NAMES, "record": None}
    if shown is None:
        return visit.render("topic_record.html", values, status=404)
    values["record"] = {
        "timestamp": shown.record.timestamp,
        "kind": "log append time" if shown.timestamp_type else "create time",
        "headers": [(header, decode(Opened(value), "text", MAX_SHOWN)) for header, value in shown.record.headers],
        "key_size": shown.key_size,
        "value_size": shown.value_size,
        "key": decode(shown.key, name if name in DECODERS else AUTO, MAX_SHOWN),
        "value": decode(shown.value, name, MAX_SHOWN),
        "internal": internal_text(place.topic, shown.record) if is_internal(place.topic) else None,
    }
    return visit.render("topic_record.html", values)


async def download(visit: PageRequest) -> Response:
    """Returns the value of a record, or its key, as a file."""
    topic = await visit.cluster.topic(visit.path("topic"))
    place, offset = _place(visit, len(topic.partitions)), _path_number(visit, "offset")
    shown = await one_record(visit.cluster, place, offset, visit.terms.opener)
    part = visit.query("part", "value")
    if part not in ("key", "value"):
        raise misuse(f"part {part[:40]}: expected key or value")
    data = None if shown is None else shown.record.key if part == "key" else shown.record.value
    if data is None:
        return visit.render("error.html", {"error": f"{place}: offset {offset} has no {part}"}, status=404)
    return Response(data, headers=_attachment(f"{place}-{offset}.{part}"), media_type="application/octet-stream")


async def export(visit: PageRequest) -> Response:
    """Returns the matching records as lines of JSON, as `odradek consume -o json` prints them, the oldest first."""
    topic = await visit.cluster.topic(visit.path("topic"))
    question = _question(visit, [part.partition_index for part in topic.partitions], is_stream=True)

    async def lines() -> AsyncIterator[str]:
        async with aclosing(_scan(visit, question).run()) as parts:
            async for part in parts:
                yield "".join(
                    as_json(as_row(PrintedRecord(shown.place, _with_documents(shown), shown.timestamp_type))) + "\n"
                    for shown in part.records
                )

    headers = _attachment(f"{topic.name}.jsonl")
    return StreamingResponse(_encoded(lines()), headers=headers, media_type="application/jsonl")


def _with_documents(shown: ShownRecord) -> Record:
    """Returns a record with the JSON text of the documents in its key and value."""
    record, key, value = shown.record, shown.key, shown.value
    return record._replace(key=key.data if key.kind else record.key, value=value.data if value.kind else record.value)


async def _encoded(lines: AsyncIterator[str]) -> AsyncIterator[bytes]:
    """Encodes lines; names of headers may have bytes that are no UTF-8."""
    async for text in lines:
        yield text.encode(errors="backslashreplace")


def _attachment(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}


def _path_number(visit: PageRequest, name: str) -> int:
    text = visit.path(name)
    if not (text.isascii() and text.isdecimal() and int(text[:20]) < 1 << 63 and len(text) < 20):
        raise misuse(f"{name} {text[:40]}: expected a whole number")
    return int(text)


def _place(visit: PageRequest, count: int) -> TopicPartition:
    index = _path_number(visit, "partition")
    if index >= count:
        raise misuse(f"partition {index}: the topic has partitions 0 to {count - 1}")
    return TopicPartition(visit.path("topic"), index)


# A new record.


async def production(visit: PageRequest) -> Response:
    _, head = await topic_head(visit, "records")
    return visit.render("topic_produce.html", {**head, "encodings": list(ENCODINGS)})


def _plain_bytes(text: str) -> bytes:
    return text.replace("\r\n", "\n").encode()


def _from_base64(text: str) -> bytes:
    return b64decode(text, validate=True)


ENCODINGS: Final[dict[str, Callable[[str], bytes]]] = {
    "text": _plain_bytes,
    "hex": bytes.fromhex,
    "base64": _from_base64,
}
"""The encodings of keys and values in the form."""


async def produce(visit: PageRequest) -> Plan:
    """Plans a new record."""
    topic = visit.path("topic")
    key = _bytes(visit, "key") or None
    value = None if visit.field("value_is_null", required=False) else _bytes(visit, "value")
    partition = visit.field("partition", required=False)
    if partition and not (partition.isascii() and partition.isdecimal() and len(partition) < 10):
        raise misuse(f"partition {partition[:40]}: expected a whole number")
    headers: list[tuple[str, bytes | None]] = []
    for line in visit.field("headers", required=False).splitlines():
        name, equals, text = line.strip().partition("=")
        if line.strip() and not (name and equals):
            raise misuse(f"header {line[:40]}: expected NAME=VALUE")
        headers += [(name, text.encode())] if name else []
    entry = InputRecord(key, value, tuple(headers), int(partition) if partition else None)

    async def carry_out() -> Sequence[Row]:
        producer = RecordProducer(visit.cluster, ProduceOptions())
        await producer.begin()
        await producer.send(topic, [entry])
        ((place, written),) = producer.written.items()
        return [{"notice": f"written to partition {place.partition} at offset {written.first}"}]

    sizes = {name: -1 if data is None else len(data) for name, data in (("key_bytes", key), ("value_bytes", value))}
    return Plan(
        "record.produce",
        topic,
        f"Produce to topic {topic}",
        carry_out,
        address(f"/topics/{topic}/records"),
        rows=[{"topic": topic, "partition": partition or None, **sizes, "headers": len(headers)}],
        is_small=True,
    )


def _bytes(visit: PageRequest, name: str) -> bytes:
    """Returns a key or value of the form. Raises CommandError."""
    encoding = visit.field(f"{name}_encoding", required=False) or "text"
    if encoding not in ENCODINGS:
        raise misuse(f"{name}_encoding {encoding[:40]}: expected one of {', '.join(ENCODINGS)}")
    text = visit.form.get(name, "")
    try:
        return ENCODINGS[encoding](text)
    except ValueError:
        raise misuse(f"{name}: not {encoding}") from None
