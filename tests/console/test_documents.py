"""Tests documents in bytes: MessagePack, CBOR, Avro and Protobuf, whole, broken and hostile."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path

import cbor2
import fastavro
import msgpack
import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2

from commands.errors import CommandError
from console.documents import UnreadableDocument, as_json, document_of, guessed
from console.schemas import FileSchemas, Schema, SchemaText, message_indexes, parsed, read_by_file, schema_id

ORDER = {"id": 7, "lines": [{"sku": "a-1"}], "total": 12.5, "open": True, "note": None}
FIELD = descriptor_pb2.FieldDescriptorProto


def shown(value: object) -> object:
    """Returns a document as a reader of its JSON text sees it."""
    return json.loads(as_json(value))


@pytest.mark.parametrize(("name", "data"), [("msgpack", msgpack.packb(ORDER)), ("cbor", cbor2.dumps(ORDER))])
def test_a_document_is_read(name: str, data: bytes) -> None:
    assert document_of(data, name) == ORDER
    assert guessed(data) == (name, ORDER)


@pytest.mark.parametrize("name", ["msgpack", "cbor"])
@pytest.mark.parametrize("data", [b"", b"\xff\xff", b"\x81", b"\xc1", b"\x81\xa1a\x01rest"])
def test_bytes_of_another_format_are_rejected(name: str, data: bytes) -> None:
    with pytest.raises(UnreadableDocument):
        document_of(data, name)


@pytest.mark.parametrize("data", [b"", b"\x81", b"plain text", b"{}", b"\x82\x01\x02\x03\x04", b"\x00" * 20, b"\xa2ab"])
def test_other_bytes_are_not_taken_for_a_document(data: bytes) -> None:
    assert guessed(data) is None


def test_values_that_json_lacks_become_text() -> None:
    value = {
        1: b"\x00\xff",
        None: Decimal("1.50"),
        "at": datetime(2026, 1, 2, tzinfo=UTC),
        "on": date(2026, 1, 2),
        b"k": {1},
        "n": 1 << 70000,
    }
    plain = json.loads(as_json(value))
    assert plain["1"] == "00ff"
    assert plain["null"] == "1.50"
    assert (plain["at"], plain["on"], plain["6b"]) == ("2026-01-02T00:00:00+00:00", "2026-01-02", [1])
    assert plain["n"].startswith("0x1000")
    assert shown(msgpack.unpackb(msgpack.packb(msgpack.Timestamp(0, 5)))) is not None


def billion_laughs() -> object:
    """Returns a list that has the same list twice, and so on."""
    value: object = ["ha"]
    for _ in range(60):
        value = [value, value]
    return value


@pytest.mark.parametrize("value", [billion_laughs(), [[]] * 300_000], ids=["laughs", "wide"])
def test_a_huge_document_is_rejected(value: object) -> None:
    with pytest.raises(UnreadableDocument, match="items"):
        as_json(value)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("cbor", b"\x81" * 100_000 + b"\x00"),
        ("cbor", b"\x9b\x00\x00\x01\x00\x00\x00\x00\x00"),
        ("cbor", b"\xd8\x1c\x81\xd8\x1d\x00"),
        ("msgpack", b"\x91" * 100_000 + b"\x00"),
        ("msgpack", b"\xdd\xff\xff\xff\xff" * 100),
        ("msgpack", b"\xdf\xff\xff\xff\xff" * 100),
        ("msgpack", b"\xc9\xff\xff\xff\xff\x01"),
    ],
)
def test_documents_that_are_deep_long_or_cyclic_are_rejected(name: str, data: bytes) -> None:
    with pytest.raises(UnreadableDocument):
        as_json(document_of(data, name))


# Avro.

AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "sku", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
LIST = {"type": "record", "name": "Link", "fields": [{"name": "next", "type": ["null", "Link"]}]}


def avro(schema: object, **references: object) -> Schema:
    texts = {name: json.dumps(text) for name, text in references.items()}
    return parsed(SchemaText("avro", json.dumps(schema), texts), "orders.avsc")


def encoded(schema: object, value: object) -> bytes:
    stream = BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)  # type: ignore[arg-type]
    return stream.getvalue()


def test_avro_is_read() -> None:
    schema, at = avro(AVRO), datetime(2026, 1, 2, tzinfo=UTC)
    data = encoded(AVRO, {"id": 7, "sku": "a-1", "at": at})
    assert shown(schema.read(data, has_head=False)) == {"id": 7, "sku": "a-1", "at": at.isoformat()}
    assert schema.label == "Order (orders.avsc)"


def test_avro_of_a_file_may_have_a_head() -> None:
    data = encoded(AVRO, {"id": 7, "sku": None, "at": 0})
    for bytes_ in (data, b"\x00\x00\x00\x00\x09" + data):
        document = read_by_file(avro(AVRO), bytes_)
        assert isinstance(document, dict)
        assert document["id"] == 7
    assert schema_id(b"\x00\x00\x00\x00\x09" + data) == 9


@pytest.mark.parametrize("data", [b"", b"\x02", b"\xff" * 30, b"\x0e\x02\xfe\xff\xff\xff\x0f", b"\x0e\x00\x00\x00"])
def test_broken_avro_is_rejected_in_words(data: bytes) -> None:
    with pytest.raises(UnreadableDocument, match="no Order"):
        avro(AVRO).read(data, has_head=False)


def test_a_type_that_contains_itself_cannot_end_the_process() -> None:
    """The compiled reader of fastavro has no limit of depth."""
    schema = avro(LIST)
    assert schema.read(b"\x02\x02\x00", has_head=False) == {"next": {"next": {"next": None}}}
    with pytest.raises(UnreadableDocument):
        schema.read(b"\x02" * 1_000_000 + b"\x00", has_head=False)


@pytest.mark.parametrize(
    "items", ["null", {"type": "fixed", "name": "F", "size": 0}, {"type": "record", "name": "E", "fields": []}]
)
def test_a_list_of_values_without_bytes_is_not_decoded(items: object) -> None:
    """Ten bytes of it would claim millions of items."""
    with pytest.raises(UnreadableDocument, match="without bytes"):
        avro({"type": "record", "name": "R", "fields": [{"name": "l", "type": {"type": "array", "items": items}}]})


def test_avro_refers_to_other_schemas() -> None:
    line = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}
    order = {"type": "record", "name": "Cart", "fields": [{"name": "line", "type": "Line"}]}
    assert avro(order, Line=line).read(b"\x02x", has_head=False) == {"line": {"sku": "x"}}


@pytest.mark.parametrize("text", ["", "{", "[]x", '{"type": "record"}', '"NoSuchType"', '{"type": "array"}'])
def test_a_schema_that_is_none_is_rejected(text: str) -> None:
    with pytest.raises(UnreadableDocument, match="no valid avro schema"):
        parsed(SchemaText("avro", text), "x")


# Protobuf.


def proto_file() -> descriptor_pb2.FileDescriptorProto:
    """Returns a file with the messages Order (which has Line inside) and Tree, which contains itself."""
    file = descriptor_pb2.FileDescriptorProto(
        name="shop.proto", package="shop", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    order = file.message_type.add(name="Order")
    order.field.add(name="id", number=1, type=FIELD.TYPE_INT32, label=FIELD.LABEL_OPTIONAL)
    order.field.add(
        name="at",
        number=2,
        type=FIELD.TYPE_MESSAGE,
        label=FIELD.LABEL_OPTIONAL,
        type_name=".google.protobuf.Timestamp",
    )
    line = order.nested_type.add(name="Line")
    line.field.add(name="sku", number=1, type=FIELD.TYPE_STRING, label=FIELD.LABEL_OPTIONAL)
    tree = file.message_type.add(name="Tree")
    tree.field.add(name="next", number=1, type=FIELD.TYPE_MESSAGE, label=FIELD.LABEL_OPTIONAL, type_name=".shop.Tree")
    return file


def protobuf(message: str = "") -> Schema:
    text = b64encode(proto_file().SerializeToString()).decode()
    return parsed(SchemaText("protobuf", text), "schema 3", message)


def test_protobuf_is_read() -> None:
    assert protobuf().read(b"\x08\x07\x12\x00", has_head=False) == {"id": 7, "at": "1970-01-01T00:00:00Z"}
    assert protobuf().label == "shop.Order (schema 3)"


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"\x00\x08\x07", {"id": 7}), (b"\x02\x00\x08\x07", {"id": 7}), (b"\x04\x00\x00\x0a\x01x", {"sku": "x"})],
)
def test_the_head_names_the_message(data: bytes, expected: object) -> None:
    assert protobuf().read(data, has_head=True) == expected


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 12, b"\x02\x06x", b"\x01", b"\x04\x00\x08", b"\x00\xff"])
def test_broken_protobuf_is_rejected_in_words(data: bytes) -> None:
    with pytest.raises(UnreadableDocument):
        protobuf().read(data, has_head=True)


def test_protobuf_that_nests_too_deep_is_rejected() -> None:
    data = b""
    for _ in range(300):
        size = len(data)
        data = b"\x0a" + (bytes([size]) if size < 128 else bytes([size & 0x7F | 0x80, size >> 7])) + data
    with pytest.raises(UnreadableDocument):
        protobuf("shop.Tree").read(data, has_head=False)


def test_a_message_that_the_file_lacks_is_named() -> None:
    with pytest.raises(UnreadableDocument, match=r"no message shop.None; it has shop.Order, shop.Tree"):
        protobuf("shop.None")


def test_indexes_come_before_the_message() -> None:
    assert message_indexes(b"\x00rest") == ([0], b"rest")
    assert message_indexes(b"\x06\x02\x00\x80\x02rest") == ([1, 0, 128], b"rest")


# Files.


def test_files_have_schemas_of_topics(tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text(json.dumps(AVRO))
    files = descriptor_pb2.FileDescriptorSet()
    timestamp_pb2.DESCRIPTOR.CopyToProto(files.file.add())
    files.file.add().CopyFrom(proto_file())
    (tmp_path / "shop.desc").write_bytes(files.SerializeToString())
    schemas = FileSchemas(
        [f"orders={tmp_path}/shop.desc"], [f"orders={tmp_path}/order.avsc", f"trees={tmp_path}/shop.desc:shop.Tree"]
    )
    keys, values, trees = (schemas.find(*at) for at in (("orders", "key"), ("orders", "value"), ("trees", "value")))
    assert keys is not None
    assert values is not None
    assert trees is not None
    assert (keys.label, values.label, trees.label) == (
        "shop.Order (shop.desc)",
        "Order (order.avsc)",
        "shop.Tree (shop.desc)",
    )
    assert schemas.find("trees", "key") is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("orders", "expected TOPIC=FILE"),
        ("orders=x.json", "expected TOPIC=FILE"),
        ("orders=x.avsc:Order", "expected TOPIC=FILE"),
        ("orders=/nowhere.avsc", "No such file"),
        ("orders={folder}/broken.avsc", "no valid avro schema"),
        ("orders={folder}/broken.desc", "descriptor set"),
        ("orders={folder}/empty.desc", "descriptor set"),
    ],
)
def test_a_file_that_is_no_schema_is_rejected(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "broken.avsc").write_text("{")
    (tmp_path / "broken.desc").write_bytes(b"\xff\xff")
    (tmp_path / "empty.desc").write_bytes(b"")
    with pytest.raises(CommandError, match=reason):
        FileSchemas([], [text.format(folder=tmp_path)])
