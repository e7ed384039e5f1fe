"""Schemas of a schema registry (Confluent's REST API), by their ids.

Requests go to the host of the command line only, without redirects and proxies. Ids come out of records, so requests
are bounded: a few at a time, a limit per minute, and none for a while after the registry did not answer.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from base64 import b64encode
from collections import OrderedDict, deque
from collections.abc import Iterable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from client.clock import Clock, done_by
from commands.errors import misuse
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

MAX_ANSWER: Final = 2 * 1024 * 1024
MAX_REFERENCES: Final = 100
ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json"


class RegistryAddress(NamedTuple):
    """A registry's address, and the user and password for it."""

    is_secure: bool
    host: str
    port: int | None
    path: str
    authorization: str

    def __str__(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"


def registry_address(url: str, login: str = "") -> RegistryAddress:
    """Returns the parts of a URL. `login` is USER:PASSWORD. Raises CommandError."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise misuse(f"--schema-registry {url[:100]}: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise misuse(f"--schema-registry {url[:100]}: expected http://HOST:PORT or https://HOST")
    if parts.username is not None:
        login = login or f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    authorization = f"Basic {b64encode(login.encode()).decode()}" if login else ""
    return RegistryAddress(parts.scheme == "https", parts.hostname, port, parts.path.rstrip("/"), authorization)


class RegistryUnreachable(UnreadableDocument):
    """The registry did not answer."""


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
            self._down = FetchedSchema(error, self._clock.monotonic_ms() + FAULT_MS)
            return self._down
        except UnreadableDocument as error:
            return FetchedSchema(error, self._clock.monotonic_ms() + FAULT_MS)

    async def _in_time(self, number: int) -> Schema:
        """Returns the schema of an id. A registry that sends a byte now and then has no more time than a silent one."""
        reading = asyncio.ensure_future(asyncio.to_thread(self._read, number))
        if not await done_by(self._clock, self._clock.monotonic_ms() + MAX_MS, reading):
            reading.add_done_callback(lambda done: done.exception())
            raise RegistryUnreachable(f"the registry at {self._address} did not answer within {MAX_MS // 1000} s")
        return reading.result()

    def _read(self, number: int) -> Schema:
        """Returns the schema of an id. Raises UnreadableDocument."""
        session = RegistrySession(self._address)
        try:
            return parsed(session.schema(number), f"schema {number}")
        finally:
            session.close()


class RegistrySession:
    """A connection to the registry that reads one schema with its references."""

    def __init__(self, address: RegistryAddress) -> None:
        self._address = address
        self._references: dict[str, str] = {}
        self._count = 0
        if address.is_secure:
            context = ssl.create_default_context()
            self._connection: HTTPConnection = HTTPSConnection(
                address.host, address.port, timeout=TIMEOUT_S, context=context
            )
        else:
            self._connection = HTTPConnection(address.host, address.port, timeout=TIMEOUT_S)

    def close(self) -> None:
        self._connection.close()

    def schema(self, number: int) -> SchemaText:
        """Returns the text of a schema, after those that it refers to. Raises UnreadableDocument."""
        answer = self._get(f"/schemas/ids/{number}")
        kind = str(answer.get("schemaType") or "AVRO")
        if kind not in KINDS:
            raise UnreadableDocument(f"schema {number}: of the unknown type {kind[:40]}")
        self._refer(answer)
        text = answer if kind != "PROTOBUF" else self._get(f"/schemas/ids/{number}?format=serialized")
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
            referred = self._get(f"/subjects/{quote(subject, safe='')}/versions/{version}")
            self._refer(referred)
            if referred.get("schemaType") == "PROTOBUF":
                referred = self._get(f"/schemas/ids/{int(str(referred['id']))}?format=serialized")
            self._references[name] = str(referred.get("schema", ""))

    def _get(self, path: str) -> dict[str, object]:
        """Returns the object that the registry answers. Raises UnreadableDocument."""
        headers = {"Accept": ACCEPT}
        if self._address.authorization:
            headers["Authorization"] = self._address.authorization
        try:
            self._connection.request("GET", self._address.path + path, headers=headers)
            response = self._connection.getresponse()
            body = response.read(MAX_ANSWER + 1)
        except (OSError, HTTPException) as error:
            raise RegistryUnreachable(f"the registry at {self._address} did not answer: {error or error!r}") from None
        if response.status != 200 or len(body) > MAX_ANSWER:
            reason = _reason(body) if response.status != 200 else f"more than {MAX_ANSWER} bytes"
            raise UnreadableDocument(f"the registry answers {path[:100]} with {response.status} {reason}")
        answer = _object(body)
        if answer is None:
            raise UnreadableDocument(f"the registry answers {path[:100]} without JSON")
        return answer


def _object(body: bytes) -> dict[str, object] | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _reason(body: bytes) -> str:
    return str((_object(body) or {}).get("message", ""))[:200]
