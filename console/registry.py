"""Schemas of a schema registry, by their ids.

Ids come out of records, so requests are bounded: a few at a time, a limit per minute, and none for a while after the
registry did not answer.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import Final, NamedTuple
from urllib.parse import quote

from client.clock import Clock, done_by
from client.registry import RegistryAddress, RegistryConnection, RegistryError, RegistryUnreachable
from console.documents import UnreadableDocument
from console.schemas import AVRO, JSON, PROTOBUF, Schema, SchemaText, parsed

KINDS: Final = {"AVRO": AVRO, "PROTOBUF": PROTOBUF, "JSON": JSON}

MAX_SCHEMAS: Final = 1000
"""Schemas, and errors of ids without one, that are kept; the one that was used longest ago is forgotten first."""

MAX_REQUESTS: Final = 4
"""Schemas that are fetched at the same time."""

MINUTE_MS: Final = 60_000
MAX_PER_MINUTE: Final = 300
"""Schemas that are fetched in a minute: a hostile topic can have another id in each record."""

FAULT_MS: Final = 30_000
"""Time after which a schema that could not be read, or a registry that did not answer, is asked for again."""

TIMEOUT_S: Final = 5
MAX_MS: Final = 10_000
"""Time of one read, and of all requests for a schema."""

MAX_REFERENCES: Final = 100


class FetchedSchema(NamedTuple):
    """A schema, or the error of an id, and the time after which it is asked for again."""

    schema: Schema | UnreadableDocument
    until_ms: int | None


class SchemaRegistry:
    """The schemas of a registry, cached. An id always has the same schema."""

    def __init__(self, address: RegistryAddress, clock: Clock) -> None:
        self._address = address
        self._clock = clock
        self._kept: OrderedDict[int, FetchedSchema] = OrderedDict()
        self._slots = asyncio.Semaphore(MAX_REQUESTS)
        self._asked_ms: deque[int] = deque()
        """The times of the requests of the last minute."""
        self._down: FetchedSchema | None = None

    def known(self, number: int) -> Schema | UnreadableDocument:
        """Returns the schema of an id that was fetched, or the error."""
        kept = self._kept.get(number)
        return kept.schema if kept is not None else UnreadableDocument(f"schema {number} is not fetched")

    async def fetch(self, numbers: Iterable[int]) -> None:
        """Fetches the schemas of ids that are not known yet."""
        await asyncio.gather(*(self._fetch(number) for number in {*numbers}))

    async def _fetch(self, number: int) -> None:
        async with self._slots:
            now_ms = self._clock.monotonic_ms()
            kept = self._kept.get(number)
            if kept is not None and (kept.until_ms is None or kept.until_ms > now_ms):
                self._kept.move_to_end(number)
                return
            self._kept[number] = await self._answer(number, now_ms)
            self._kept.move_to_end(number)
            while len(self._kept) > MAX_SCHEMAS:
                self._kept.popitem(last=False)

    async def _answer(self, number: int, now_ms: int) -> FetchedSchema:
        if self._down is not None and (self._down.until_ms or 0) > now_ms:
            return self._down
        while self._asked_ms and self._asked_ms[0] <= now_ms - MINUTE_MS:
            self._asked_ms.popleft()
        if len(self._asked_ms) >= MAX_PER_MINUTE:
            return FetchedSchema(
                UnreadableDocument(f"schema {number}: too many ids of schemas in a minute"), now_ms + FAULT_MS
            )
        self._asked_ms.append(now_ms)
        try:
            return FetchedSchema(await self._in_time(number), None)
        except RegistryUnreachable as error:
            self._down = FetchedSchema(UnreadableDocument(str(error)), self._clock.monotonic_ms() + FAULT_MS)
            return self._down
        except (RegistryError, UnreadableDocument) as error:
            return FetchedSchema(UnreadableDocument(str(error)), self._clock.monotonic_ms() + FAULT_MS)

    async def _in_time(self, number: int) -> Schema:
        """Returns the schema of an id. A registry that sends a byte now and then has no more time than a silent one."""
        reading = asyncio.ensure_future(asyncio.to_thread(self._read, number))
        if not await done_by(self._clock, self._clock.monotonic_ms() + MAX_MS, reading):
            reading.add_done_callback(lambda done: done.exception())
            raise RegistryUnreachable(f"the registry at {self._address} did not answer within {MAX_MS // 1000} s")
        return reading.result()

    def _read(self, number: int) -> Schema:
        """Returns the schema of an id. Raises RegistryError, UnreadableDocument."""
        connection = RegistryConnection(self._address, TIMEOUT_S)
        try:
            return parsed(SchemaReader(connection).schema(number), f"schema {number}")
        finally:
            connection.close()


class SchemaReader:
    """Reads one schema with its references."""

    def __init__(self, connection: RegistryConnection) -> None:
        self._connection = connection
        self._references: dict[str, str] = {}
        self._count = 0

    def schema(self, number: int) -> SchemaText:
        """Returns the text of a schema, after those that it refers to.

        Raises RegistryError, UnreadableDocument.
        """
        answer = self._connection.get(f"/schemas/ids/{number}")
        kind = str(answer.get("schemaType") or "AVRO")
        if kind not in KINDS:
            raise UnreadableDocument(f"schema {number}: of the unknown type {kind[:40]}")
        self._refer(answer)
        text = answer if kind != "PROTOBUF" else self._connection.get(f"/schemas/ids/{number}?format=serialized")
        return SchemaText(KINDS[kind], str(text.get("schema", "")), self._references)

    def _refer(self, answer: dict[str, object]) -> None:
        """Adds the schemas that a schema refers to, the deepest first."""
        references = answer.get("references") or []
        for entry in references if isinstance(references, list) else []:
            name, subject, version = (str(entry.get(key, "")) for key in ("name", "subject", "version"))
            if name in self._references:
                continue
            self._count += 1
            if self._count > MAX_REFERENCES or not version.isdecimal():
                raise UnreadableDocument(f"more than {MAX_REFERENCES} references, or one of version {version[:20]}")
            referred = self._connection.get(f"/subjects/{quote(subject, safe='')}/versions/{version}")
            self._refer(referred)
            if referred.get("schemaType") == "PROTOBUF":
                own = str(referred.get("id"))
                if not own.isdecimal():
                    raise UnreadableDocument(f"the reference {name[:100]} has no id")
                referred = self._connection.get(f"/schemas/ids/{own}?format=serialized")
            self._references[name] = str(referred.get("schema", ""))
