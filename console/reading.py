"""Opens the keys and values of records: decodes what a schema or a format encodes, and applies the masks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import re2

from commands.errors import misuse
from console.documents import FORMATS, MAX_BYTES, UnreadableDocument, as_json, document_of, guessed
from console.records import AUTO, DECODERS, Opened
from console.registry import SchemaRegistry
from console.schemas import AVRO, HEAD_BYTES, PROTOBUF, FileSchemas, Schema, read_by_file, schema_id
from protocol.records.record import Record

MASK: Final = "•••".encode()

BY_SCHEMA: Final = (AVRO, PROTOBUF)
NAMES: Final = (*DECODERS, *BY_SCHEMA, *FORMATS)
"""The ways to show a key or value, by their names in URLs."""


def checked_name(name: str) -> str:
    """Returns the name of a way to show values. Raises CommandError if there is none of this name."""
    if name not in NAMES:
        raise misuse(f"decode {name[:40]}: expected one of {', '.join(NAMES)}")
    return name


class Masks:
    """Patterns whose matches are hidden: they are replaced before records are filtered or shown."""

    def __init__(self, patterns: Sequence[str]) -> None:
        """Raises CommandError for an invalid pattern."""
        self._patterns = []
        for pattern in patterns:
            try:
                self._patterns.append(re2.compile(pattern.encode()))
            except re2.error as error:
                raise misuse(f"--mask {pattern}: {error}") from None

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def record(self, record: Record) -> Record:
        """Returns a record with its masks applied."""
        if not self._patterns:
            return record
        headers = [(name, self.data(value)) for name, value in record.headers]
        return record._replace(key=self.data(record.key), value=self.data(record.value), headers=headers)

    def data(self, data: bytes | None) -> bytes | None:
        """Returns bytes with the masks applied."""
        if data is None:
            return None
        for pattern in self._patterns:
            data = pattern.sub(MASK, data)
        return data


class RecordOpener:
    """Opens the keys and values of records."""

    def __init__(self, masks: Masks, files: FileSchemas, registry: SchemaRegistry | None) -> None:
        self.masks = masks
        self._files = files
        self._registry = registry

    @classmethod
    def plain(cls) -> RecordOpener:
        """Returns an opener without masks and schemas."""
        return cls(Masks(()), FileSchemas(), None)

    async def prepare(self, records: Iterable[Record]) -> None:
        """Fetches the schemas that records name by their ids."""
        if self._registry is None:
            return
        numbers = {schema_id(data) for record in records for data in (record.key, record.value)} - {None}
        if numbers:
            await self._registry.fetch(number for number in numbers if number is not None)

    def open(self, topic: str, part: str, data: bytes | None, name: str) -> Opened:
        """Returns the `part`, "key" or "value", of a record, to be shown as `name`."""
        if data is None:
            return Opened(None)
        try:
            kind, label, document = self._document(topic, part, data, name)
            if kind:
                return Opened(self.masks.data(as_json(document)), kind, label)
        except UnreadableDocument as error:
            return Opened(self.masks.data(data), fault=str(error))
        return Opened(self.masks.data(data))

    def _document(self, topic: str, part: str, data: bytes, name: str) -> tuple[str, str, object]:
        """Returns format, schema and document of bytes; an empty format if they have none. Raises
        UnreadableDocument."""
        if name in FORMATS:
            return name, "", document_of(data, name)
        if name != AUTO and name not in BY_SCHEMA:
            return "", "", None
        schema = self._files.find(topic, part)
        if schema is not None:
            return self._of(schema, name), schema.label, read_by_file(schema, data)
        number = schema_id(data) if self._registry is not None else None
        if number is not None and self._registry is not None:
            known = self._registry.known(number)
            if isinstance(known, UnreadableDocument):
                raise known
            if len(data) > MAX_BYTES:
                raise UnreadableDocument(f"more than {MAX_BYTES} bytes")
            return self._of(known, name), known.label, known.read(data[HEAD_BYTES:], has_head=True)
        if name in BY_SCHEMA:
            where = "name a registry (--schema-registry) or a file (--value-schema)" if self._registry is None else ""
            raise UnreadableDocument(f"no {name} with a known schema. {where}".strip())
        found = guessed(data)
        return (found[0], "", found[1]) if found is not None else ("", "", None)

    @staticmethod
    def _of(schema: Schema, name: str) -> str:
        if name in BY_SCHEMA and schema.kind != name:
            raise UnreadableDocument(f"no {name}: the schema is {schema.kind}")
        return schema.kind
