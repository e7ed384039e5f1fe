"""Large requests in parts: if the entries of a request are answered separately, a large request is answered part by
part. The rule and the handler see one part after another, and other connections have their turn in between. Kafka
doesn't need this, because each request in progress has a thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Final, NamedTuple

from broker.dispatch.api import Entries, Handle
from broker.dispatch.call import Call, Request

PART_ENTRIES: Final = 1000
"""Entries of a part: some ten milliseconds, if each entry takes ten to fifty microseconds."""


class RequestPart(NamedTuple):
    """Some entries of a request."""

    entries: list[object]
    continued: int
    """Number of levels, from this list inwards, whose first entry continues the last entry of the previous part."""


def parts(entries: Sequence[object], nested: Entries | None) -> Iterator[RequestPart]:
    """Yields the entries of a request in parts of PART_ENTRIES; `nested` is the list by which an entry is split too."""
    some: list[object] = []
    count = 0
    for entry in entries:
        size = size_of(entry, nested)
        if some and count + size > PART_ENTRIES:
            yield RequestPart(some, 0)
            some, count = [], 0
        if nested is None or size <= PART_ENTRIES:
            some.append(entry)
            count += size
            continue
        for number, inner in enumerate(parts(getattr(entry, nested.requested), nested.nested)):
            piece = copy(entry)
            setattr(piece, nested.requested, inner.entries)
            yield RequestPart([piece], 1 + inner.continued if number else 0)
    if some:
        yield RequestPart(some, 0)


def size_of(entry: object, nested: Entries | None) -> int:
    """Returns the number of entries nested in an entry, at least 1; for a large entry, any number larger than a
    part."""
    if nested is None:
        return 1
    inner: Sequence[object] = getattr(entry, nested.requested) or ()
    size = len(inner)
    if nested.nested is not None and size <= PART_ENTRIES:
        size = 0
        for innermost in inner:
            size += size_of(innermost, nested.nested)
            if size > PART_ENTRIES:
                break
    return max(1, size)


async def in_parts(call: Call[Request], handle: Handle, rows: Sequence[Entries]) -> object:
    """Returns the response to a request, whose entries are handled in parts. An error of the whole request ends it."""
    request = call.request
    row = next((row for row in rows if getattr(request, row.requested)), None)
    if row is None:
        return await handle(call)
    response: object = None
    answers: Answers | None = None
    turns = call.turns()
    for part in parts(getattr(request, row.requested), row.nested):
        await turns.next()
        call.request = copy(request)
        setattr(call.request, row.requested, part.entries)
        answer = await handle(call)
        if getattr(answer, "error_code", None):
            return answer
        if answers is None:
            response = answer
            answers = Answers(row, getattr(answer, row.answered))
        else:
            answers.add(getattr(answer, row.answered), part.continued)
    return response


class Answers:
    """The answers to the entries of a list, from all parts so far."""

    def __init__(self, row: Entries, gathered: list[object]) -> None:
        """`gathered` is the response's list, which is extended."""
        self._row = row
        self._gathered = gathered
        self._places: dict[object, int] = {}
        """The positions of the answers by their keys, if the row has a key."""
        self._nested: dict[int, Answers] = {}
        """The nested answers of entries to which a later part has added, by their positions."""
        if row.key:
            self._places = {getattr(answer, row.key): place for place, answer in enumerate(gathered)}

    def add(self, answers: Iterable[object], continued: int) -> None:
        """Adds the answers of a part."""
        gathered, key = self._gathered, self._row.key
        for answer in answers:
            place = len(gathered) - 1 if continued else -1
            if key:
                place = self._places.setdefault(getattr(answer, key), len(gathered))
            if 0 <= place < len(gathered):
                self._add_to(place, answer, continued - 1 if continued else 0)
            else:
                gathered.append(answer)

    def _add_to(self, place: int, answer: object, continued: int) -> None:
        """Adds an answer to the earlier answer of the same entry. An error of the whole entry replaces the answer."""
        row, earlier = self._row, self._gathered[place]
        if row.nested is None:
            self._gathered[place] = answer if row.repeated is None else row.repeated(answer)
        elif getattr(answer, "error_code", 0):
            self._gathered[place] = answer
        elif not getattr(earlier, "error_code", 0):
            nested = self._nested.get(place)
            if nested is None:
                nested = self._nested[place] = Answers(row.nested, getattr(earlier, row.nested.answered))
            nested.add(getattr(answer, row.nested.answered), continued)
