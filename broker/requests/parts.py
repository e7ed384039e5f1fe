"""Large requests in parts: a request of many entries that are answered each by itself is answered some at a time.

Guard and handler see one part after the other, and other connections have their turn between them. Kafka needs none of
this: it has a thread for each request that is at work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Final, NamedTuple

from broker.exchange.turns import Turns
from broker.requests.api import Entries, Handle
from broker.requests.call import HostCall, Request

PART_ENTRIES: Final = 1000
"""Entries of a part: some ten milliseconds, for entries that cost ten to fifty microseconds each."""


class RequestPart(NamedTuple):
    """Some entries of a request."""

    entries: list[object]
    is_continued: bool
    """True if its one entry goes on with the nested entries of the entry before."""


def parts(entries: Sequence[object], nested: str) -> Iterator[RequestPart]:
    """Yields the entries of a request in parts of PART_ENTRIES; `nested` names the list of nested entries, by which an
    entry is split too. Empty if entries have none."""
    some: list[object] = []
    count = 0
    for entry in entries:
        inner = (getattr(entry, nested) if nested else None) or ()
        if some and count + len(inner) >= PART_ENTRIES:
            yield RequestPart(some, is_continued=False)
            some, count = [], 0
        if len(inner) <= PART_ENTRIES:
            some.append(entry)
            count += max(1, len(inner))
            continue
        for start in range(0, len(inner), PART_ENTRIES):
            piece = copy(entry)
            setattr(piece, nested, inner[start : start + PART_ENTRIES])
            yield RequestPart([piece], is_continued=start > 0)
    if some:
        yield RequestPart(some, is_continued=False)


async def in_parts(call: HostCall[Request], handle: Handle, rows: Sequence[Entries]) -> object:
    """Returns the response to a request, whose entries are handled in parts. An error of the whole request ends it."""
    request = call.request
    row = next((row for row in rows if getattr(request, row.requested)), None)
    if row is None:
        return await handle(call)
    response: object = None
    turns = Turns(call.host.clock)
    for part in parts(getattr(request, row.requested), row.nested):
        await turns.next()
        call.request = copy(request)
        setattr(call.request, row.requested, part.entries)
        answer = await handle(call)
        if getattr(answer, "error_code", None):
            return answer
        if response is None:
            response = answer
        else:
            add(getattr(response, row.answered), getattr(answer, row.answered), part, row.nested_answers)
    return response


def add(answers: list[object], more: list[object], part: RequestPart, nested_answers: str) -> None:
    """Adds the answers of a part; those of an entry that is continued to the nested answers of the last."""
    if part.is_continued and answers and more:
        getattr(answers[-1], nested_answers).extend(getattr(more[0], nested_answers))
    else:
        answers += more
