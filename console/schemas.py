"""Schemas of keys and values: Avro, Protobuf and JSON, from a file or a schema registry.

In the wire format of Confluent's serializers a zero byte and the schema's id precede the data; in Protobuf also the
indexes of the message in its file. Bytes that a schema file describes may have that head or not.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from commands.errors import misuse
from commands.files import read_bytes, read_text
from console.documents import MAX_BYTES, UnreadableDocument
from protocol.lazy import lazy

if TYPE_CHECKING:
    import fastavro
    from fastavro import _read_py as slow_avro
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
    from google.protobuf.descriptor import Descriptor, FileDescriptor
else:  # with the first schema
    fastavro = lazy("fastavro")
    slow_avro = lazy("fastavro._read_py")
    descriptor_pb2 = lazy("google.protobuf.descriptor_pb2")
    descriptor_pool = lazy("google.protobuf.descriptor_pool")
    json_format = lazy("google.protobuf.json_format")
    message_factory = lazy("google.protobuf.message_factory")

HEAD_BYTES: Final = 5
MAX_INDEXES: Final = 32
"""Levels of messages inside messages in a Protobuf file."""

MAX_VARINT: Final = 10
AVRO, PROTOBUF, JSON = "avro", "protobuf", "json"

ASSIGNMENT: Final = re.compile(r"(?P<topic>[\w.-]+)=(?P<file>.+?)(?::(?P<message>[A-Za-z_][\w.]*))?", re.DOTALL)
ASSIGNMENT_HELP: Final = "expected TOPIC=FILE.avsc, TOPIC=FILE.desc or TOPIC=FILE.desc:MESSAGE"

OWN_FILE: Final = "schema.proto"
WELL_KNOWN: Final = re.compile(r"google/protobuf/([a-z_]+)\.proto")


def schema_id(data: bytes | None) -> int | None:
    """Returns the id in the head of the wire format; None if the bytes have no such head."""
    if data is None or len(data) <= HEAD_BYTES or data[0]:
        return None
    return int.from_bytes(data[1:HEAD_BYTES], "big")


class Schema(Protocol):
    """A schema that decodes bytes."""

    @property
    def kind(self) -> str:
        """The format: AVRO, PROTOBUF or JSON."""
        ...

    @property
    def label(self) -> str:
        """The name of the schema, and where it comes from."""
        ...

    def read(self, data: bytes, *, has_head: bool) -> object:
        """Returns the document of bytes. `has_head` is true for the bytes that follow a schema id. Raises
        UnreadableDocument."""
        ...


class SchemaText(NamedTuple):
    """A schema as a registry or a file has it."""

    kind: str
    text: str
    references: Mapping[str, str] = {}
    """The schemas that it refers to, by name; each comes before those that refer to it."""


def parsed(source: SchemaText, origin: str, message: str = "") -> Schema:
    """Returns a schema. Raises UnreadableDocument if it isn't valid."""
    try:
        if source.kind == AVRO:
            return AvroSchema(source, origin)
        if source.kind == PROTOBUF:
            return ProtobufSchema(source, origin, message)
        return JsonSchema(origin)
    except UnreadableDocument:
        raise
    except ModuleNotFoundError as error:
        raise UnreadableDocument(f"{origin}: needs {error.name}: pip install 'odradek[console]'") from None
    except Exception as error:  # the parsers raise errors of their own
        raise UnreadableDocument(f"{origin}: no valid {source.kind} schema: {str(error)[:300]}") from None


class JsonSchema:
    """A JSON Schema: the bytes are JSON."""

    kind = JSON

    def __init__(self, origin: str) -> None:
        self.label = origin

    def read(self, data: bytes, *, has_head: bool) -> object:
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise UnreadableDocument(f"no JSON: {error}") from None


class AvroSchema:
    """A schema of Avro."""

    kind = AVRO

    def __init__(self, source: SchemaText, origin: str) -> None:
        named: dict[str, dict[str, object]] = {}
        for text in source.references.values():
            fastavro.parse_schema(json.loads(text), named_schemas=named)
        self._schema = fastavro.parse_schema(json.loads(source.text), named_schemas=named)
        name = self._schema.get("name", "") if isinstance(self._schema, dict) else ""
        self.label = f"{name} ({origin})" if name else origin
        types = AvroTypes(named)
        types.has_no_bytes(self._schema)
        # The compiled reader has no limit of depth: a long value of a type that contains itself ends the process.
        self._read = slow_avro.schemaless_reader if types.is_recursive else fastavro.schemaless_reader

    def read(self, data: bytes, *, has_head: bool) -> object:
        stream = BytesIO(data)
        try:
            document: object = self._read(stream, self._schema, None)
        except Exception as error:  # fastavro raises whatever the broken bytes lead to
            raise UnreadableDocument(f"no {self.label}: {str(error)[:300] or type(error).__name__}") from None
        if stream.tell() < len(data):
            raise UnreadableDocument(f"no {self.label}: {len(data) - stream.tell()} bytes follow it")
        return document


class AvroTypes:
    """Finds the types of which a few bytes can make a huge value."""

    def __init__(self, named: Mapping[str, object]) -> None:
        self.is_recursive = False
        """True if a type contains itself."""
        self._named = named
        self._known: dict[str, bool | None] = {}
        """The result for each named type; None while it is looked for."""

    def has_no_bytes(self, schema: object) -> bool:
        """Returns True if a value of the type can have no bytes. Raises UnreadableDocument for a list of such values,
        of which a few bytes claim millions."""
        if isinstance(schema, list):
            for branch in schema:
                self.has_no_bytes(branch)
            return False
        if not isinstance(schema, dict):
            return schema == "null" or (schema in self._named and self.has_no_bytes(self._named[str(schema)]))
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._record(str(schema["name"]), [field["type"] for field in schema["fields"]])
        if kind in ("array", "map"):
            is_free = self.has_no_bytes(schema["items" if kind == "array" else "values"])
            if is_free and kind == "array":
                raise UnreadableDocument("a list of values without bytes is not decoded")
            return False
        if kind in ("fixed", "enum"):
            return kind == "fixed" and not schema["size"]
        return self.has_no_bytes(kind)

    def _record(self, name: str, types: Sequence[object]) -> bool:
        if name in self._known:
            known = self._known[name]
            self.is_recursive = self.is_recursive or known is None
            return bool(known)
        self._known[name] = None
        found = [self.has_no_bytes(field) for field in types]  # every field, even after one that has bytes
        self._known[name] = all(found)
        return all(found)


class ProtobufSchema:
    """A file of Protobuf, and the message that bytes without a head have."""

    kind = PROTOBUF

    def __init__(self, source: SchemaText, origin: str, message: str = "") -> None:
        """Without a `message`, the first one of the file counts."""
        self._file = _file_of(source)
        self._origin = origin
        messages = list(self._file.message_types_by_name.values())
        if message:
            try:
                self._message = self._file.pool.FindMessageTypeByName(message)
            except KeyError:
                names = ", ".join(known.full_name for known in messages)
                raise UnreadableDocument(f"{origin}: no message {message}; it has {names}") from None
        elif messages:
            self._message = messages[0]
        else:
            raise UnreadableDocument(f"{origin}: no message")

    @property
    def label(self) -> str:
        return f"{self._message.full_name} ({self._origin})"

    def read(self, data: bytes, *, has_head: bool) -> object:
        descriptor: Descriptor = self._message
        if has_head:
            indexes, data = message_indexes(data)
            descriptor = self._at(indexes)
        message = message_factory.GetMessageClass(descriptor)()
        try:
            message.ParseFromString(data)
            return json_format.MessageToDict(message, preserving_proto_field_name=True, descriptor_pool=self._file.pool)
        except Exception as error:  # protobuf raises errors of its own, and TypeError for an unknown Any
            raise UnreadableDocument(f"no {descriptor.full_name}: {str(error)[:300]}") from None

    def _at(self, indexes: Sequence[int]) -> Descriptor:
        messages = list(self._file.message_types_by_name.values())
        descriptor = None
        for index in indexes:
            if not 0 <= index < len(messages):
                raise UnreadableDocument(f"{self._origin}: no message at {list(indexes)}")
            descriptor = messages[index]
            messages = list(descriptor.nested_types)
        if descriptor is None:
            raise UnreadableDocument(f"{self._origin}: no message")
        return descriptor


def message_indexes(data: bytes) -> tuple[list[int], bytes]:
    """Returns the indexes of a message in its file, and the bytes that follow. Raises UnreadableDocument."""
    count, at = _zigzag(data, 0)
    if not 0 <= count <= MAX_INDEXES:
        raise UnreadableDocument(f"{count} indexes of a message")
    indexes = []
    for _ in range(count):
        index, at = _zigzag(data, at)
        indexes.append(index)
    return indexes or [0], data[at:]


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift, byte in enumerate(data[at : at + MAX_VARINT]):
        number |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at + shift + 1
    raise UnreadableDocument("the indexes of the message are cut")


def _file_of(source: SchemaText) -> FileDescriptor:
    """Returns the descriptor of a file of Protobuf. Its text, and those of the files that it imports, are
    FileDescriptorProto in base64."""
    pool = descriptor_pool.DescriptorPool()
    known: set[str] = set()
    for name, text in {**source.references, OWN_FILE: source.text}.items():
        file = descriptor_pb2.FileDescriptorProto.FromString(b64decode(text))
        file.name = name
        for imported in file.dependency:
            _add_well_known(pool, imported, known)
        pool.Add(file)
        known.add(name)
    return pool.FindFileByName(OWN_FILE)


def _add_well_known(pool: descriptor_pool.DescriptorPool, name: str, known: set[str]) -> None:
    """Adds a file of Protobuf's own, such as google/protobuf/timestamp.proto, which registries don't have."""
    match = WELL_KNOWN.fullmatch(name)
    if match is None or name in known:
        return
    known.add(name)
    file: FileDescriptor = import_module(f"google.protobuf.{match[1]}_pb2").DESCRIPTOR
    for imported in file.dependencies:
        _add_well_known(pool, imported.name, known)
    pool.AddSerializedFile(file.serialized_pb)


# Files.


class FileSchemas:
    """The schemas that the command line names, by topic and part of the record."""

    def __init__(self, keys: Sequence[str] = (), values: Sequence[str] = ()) -> None:
        """Each text is TOPIC=FILE. Raises CommandError."""
        self._schemas: dict[tuple[str, str], Schema] = {}
        for part, option, texts in (("key", "--key-schema", keys), ("value", "--value-schema", values)):
            for text in texts:
                match = ASSIGNMENT.fullmatch(text)
                if match is None:
                    raise misuse(f"{option} {text[:100]}: {ASSIGNMENT_HELP}")
                self._schemas[match["topic"], part] = _file_schema(match["file"], match["message"] or "", option)

    def find(self, topic: str, part: str) -> Schema | None:
        """Returns the schema of the keys or the values of a topic."""
        return self._schemas.get((topic, part))


def _file_schema(path: str, message: str, option: str) -> Schema:
    """Returns the schema in a file. Raises CommandError."""
    kind = {".avsc": AVRO, ".desc": PROTOBUF}.get(Path(path).suffix)
    if kind is None or (message and kind != PROTOBUF):
        raise misuse(f"{option} {path[:100]}: {ASSIGNMENT_HELP}")
    try:
        source = SchemaText(AVRO, read_text(path, option)) if kind == AVRO else _descriptor_set(path, option)
        return parsed(source, Path(path).name, message)
    except UnreadableDocument as error:
        raise misuse(f"{option} {error}") from None


def _descriptor_set(path: str, option: str) -> SchemaText:
    """Returns the last file of a descriptor set, which is the one that protoc was called with, and the others."""
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(read_bytes(path, option)).file
    except Exception as error:  # protobuf's DecodeError
        raise UnreadableDocument(f"{path}: no descriptor set, which protoc writes: {error}") from None
    if not files:
        raise UnreadableDocument(f"{path}: the descriptor set is empty")
    texts = {file.name: b64encode(file.SerializeToString()).decode() for file in files}
    return SchemaText(PROTOBUF, texts.popitem()[1], texts)


def read_by_file(schema: Schema, data: bytes) -> object:
    """Returns the document of bytes by a schema file: without a head, or else with one. Raises UnreadableDocument."""
    if len(data) > MAX_BYTES:
        raise UnreadableDocument(f"more than {MAX_BYTES} bytes")
    try:
        return schema.read(data, has_head=False)
    except UnreadableDocument:
        if schema_id(data) is None:
            raise
        return schema.read(data[HEAD_BYTES:], has_head=True)
