"""Tests what loads do with a table: its columns follow the schemas, dead letters are decoded again, keys are upserted,
branches are audited before they are published.
"""

from __future__ import annotations

import io
import json

import fastavro
import pytest

from pipeline.decode import MAX_COLONS, MAX_FIELDS, MAX_IDS, MAX_SCHEMAS, Decoding
from pipeline.errors import PipelineError
from pipeline.formats import Format
from pipeline.iceberg.audit import audit_tables
from pipeline.iceberg.reprocess import reprocess
from pipeline.producing import Outgoing, Writer
from pipeline.ranges import EARLIEST, RangeBounds
from tests.client.schema_registry import running_registry
from tests.pipeline.spark.records import START_MS, create, produce
from tests.pipeline.spark.tables import DEAD_NAME, Warehouse, read_by_pyiceberg

USER_1 = {"type": "record", "name": "User", "fields": [{"name": "id", "type": "int"}]}
USER_2 = {
    "type": "record",
    "name": "User",
    "fields": [{"name": "name", "type": ["null", "string"], "default": None}, {"name": "id", "type": "long"}],
}


def write(warehouse: Warehouse, records: list[tuple[str | None, bytes | None]]) -> None:
    """Writes keys and values to the topic's only partition."""
    with Writer(warehouse.broker.bootstrap, warehouse.topic) as writer:
        for key, value in records:
            writer.write(Outgoing(None if key is None else key.encode(), value, [], START_MS, 0))


def json_as(schema: str = "") -> Decoding:
    return Decoding(Format.JSON, schema)


def test_columns_are_added_widened_and_found_by_name(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic)
    produce(warehouse.broker, warehouse.topic, [b'{"a": 1, "b": "x"}'])
    warehouse.load(decoding=json_as("a int, b string"))
    produce(warehouse.broker, warehouse.topic, [b'{"b": "y", "c": 0.5, "a": 3000000000}'])
    warehouse.load(decoding=json_as("c double, b string, a bigint"))

    assert warehouse.rows("data") == [
        ({"a": 1, "b": "x", "c": None},),
        ({"a": 3_000_000_000, "b": "y", "c": 0.5},),
    ]
    with pytest.raises(PipelineError, match="its columns don't fit the records"):
        warehouse.load(decoding=json_as("a boolean"), starting=RangeBounds(named=EARLIEST))
    assert warehouse.audit().clean


def test_a_schema_that_is_inferred_grows_with_the_values(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic)
    produce(warehouse.broker, warehouse.topic, [b'{"a": 1, "in": {"x": 1}}', None])
    warehouse.load(decoding=json_as())
    produce(warehouse.broker, warehouse.topic, [b'{"a": 2, "in": {"x": 2, "y": "z"}}', b'{"a": "text"}', b"no json"])

    assert warehouse.load(decoding=json_as()).quarantined == 2
    assert warehouse.rows("data") == [
        ({"a": 1, "in": {"x": 1, "y": None}},),
        (None,),
        ({"a": 2, "in": {"x": 2, "y": "z"}},),
    ]
    assert warehouse.audit().clean


def framed(number: int, schema: object, value: object) -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(schema), value)
    return b"\0" + number.to_bytes(4, "big") + body.getvalue()


def test_values_are_decoded_by_the_schemas_of_their_ids(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic)
    with running_registry() as registry:
        registry.add(7, USER_1)
        registry.add(9, USER_2)
        decoding = Decoding.of("confluent-avro", None, None, registry.url)
        produce(warehouse.broker, warehouse.topic, [framed(7, USER_1, {"id": 1})])
        warehouse.load(decoding=decoding)
        new = framed(9, USER_2, {"name": "Ada", "id": 2**40})
        unknown = framed(8, USER_1, {"id": 3})
        produce(warehouse.broker, warehouse.topic, [new, framed(7, USER_1, {"id": 4}), unknown])
        assert warehouse.load(decoding=decoding).quarantined == 1

    named = [({"id": 1, "name": None},), ({"id": 2**40, "name": "Ada"},), ({"id": 4, "name": None},)]
    assert warehouse.rows("data") == named
    assert read_by_pyiceberg(warehouse.folder, DEAD_NAME).scan().to_arrow()["reason"].to_pylist() == [
        "schema id 8 is not in the registry"
    ]
    assert warehouse.audit().clean
    produce(warehouse.broker, warehouse.topic, [framed(7, USER_1, {"id": 5})])
    with pytest.raises(PipelineError, match="did not answer"):
        warehouse.load(decoding=decoding)


def test_ids_of_strangers_are_dead_letters_and_leave_the_others_in_peace(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic)
    strange = [2**32 - 1 - number for number in range(MAX_SCHEMAS)] + [10_000 + number for number in range(MAX_IDS)]
    with running_registry() as registry:
        for number in (7, *range(100, 100 + MAX_SCHEMAS)):  # one more than a run decodes by
            registry.add(number, USER_1)
        registry.add(9, "message", schemaType="PROTOBUF")
        known = [framed(number, USER_1, {"id": number}) for number in range(100, 100 + MAX_SCHEMAS)]
        produce(warehouse.broker, warehouse.topic, [framed(7, USER_1, {"id": 1})] * 2 + known)
        produce(warehouse.broker, warehouse.topic, [framed(number, USER_1, {"id": 0}) for number in (9, *strange)])
        done = warehouse.load(decoding=Decoding.of("confluent-avro", None, None, registry.url))

    assert (done.records, done.quarantined) == (MAX_SCHEMAS + 1, 1 + 1 + len(strange))
    assert len(registry.requests) <= MAX_IDS
    assert warehouse.rows("data")[:2] == [({"id": 1},)] * 2
    reasons = set(read_by_pyiceberg(warehouse.folder, DEAD_NAME).scan().to_arrow()["reason"].to_pylist())
    rarest = 100 + MAX_SCHEMAS - 1
    assert "schema id 9 has the type PROTOBUF, not AVRO" in reasons
    assert f"schema id {rarest} is not among the most frequent of the run" in reasons
    assert warehouse.audit().clean


def test_many_keys_are_rejected_before_they_become_fields(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic)
    many = b"{" + b",".join(b'"%d":1' % number for number in range(MAX_COLONS + 1)) + b"}"
    produce(warehouse.broker, warehouse.topic, [b'{"id": 1}', many])
    with pytest.raises(PipelineError, match="more than 100000 keys or colons, so no schema is inferred"):
        warehouse.load(decoding=json_as())
    done = warehouse.load(decoding=json_as("id int"))
    assert (done.records, done.quarantined) == (2, 0)


@pytest.mark.parametrize("nested", [False, True])
def test_many_fields_are_rejected(warehouse: Warehouse, *, nested: bool) -> None:
    create(warehouse.broker, warehouse.topic)
    half = MAX_FIELDS // 2 + 1
    values = [{f"{letter}{number}": 1 for number in range(half)} for letter in "ab"]
    produce(warehouse.broker, warehouse.topic, [json.dumps({"in": v} if nested else v).encode() for v in values])
    with pytest.raises(PipelineError, match="more than 1000 fields, so no schema is inferred"):
        warehouse.load(decoding=json_as())


def test_dead_letters_that_can_be_decoded_move_into_the_table(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic)
    produce(warehouse.broker, warehouse.topic, [b'{"a": 1}', b'{"a": 3000000000}', b"broken"])
    assert warehouse.load(decoding=json_as("a int")).quarantined == 2
    table = warehouse.table

    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reprocess(table, json_as("a bigint"), interrupted)
    done = reprocess(table, json_as("a bigint"))
    assert (done.records, done.quarantined) == (0, 1)
    assert warehouse.rows("offset", "data") == [(0, {"a": 1}), (1, {"a": 3_000_000_000})]
    assert warehouse.offsets(DEAD_NAME) == [(0, 2)]
    assert warehouse.audit().clean


def test_an_upserted_table_has_the_last_record_of_each_key(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic)
    write(warehouse, [("a", b"1"), ("b", b"1"), ("a", b"2"), ("c", b"1"), (None, b"no key")])
    done = warehouse.load(upsert=True)
    assert (done.records, done.quarantined) == (3, 1)
    assert warehouse.audit().clean
    write(warehouse, [("b", None), ("c", b"2"), ("d", None), ("e", b"1")])
    warehouse.load(upsert=True)

    assert warehouse.rows("key", "value", "offset") == [(b"a", b"2", 2), (b"c", b"2", 6), (b"e", b"1", 8)]
    assert warehouse.offsets(DEAD_NAME) == [(0, 4)]
    assert warehouse.audit().clean
    with pytest.raises(PipelineError, match="the last record of each key"):
        warehouse.load(upsert=True, starting=RangeBounds(named=EARLIEST))
    write(warehouse, [("a", None)])
    assert not warehouse.audit().clean
    assert warehouse.load().ranges  # the table knows that it is upserted
    assert warehouse.rows("key") == [(b"c",), (b"e",)]
    warehouse.spark.sql(f"UPDATE {warehouse.table.quoted} SET offset = 0 WHERE key = X'63'")
    assert not warehouse.audit().clean


def test_a_branch_is_published_only_if_its_audit_is_clean(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic)
    produce(warehouse.broker, warehouse.topic, [b"x"] * 3)
    warehouse.load(branch="checked")
    assert warehouse.offsets() == []
    table = warehouse.table
    warehouse.spark.sql(f"INSERT INTO {table.on('checked')} SELECT * FROM {table.on('checked')} WHERE offset = 1")
    assert not publish(warehouse)
    assert warehouse.offsets() == []
    warehouse.spark.sql(f"ALTER TABLE {table.quoted} DROP BRANCH checked")

    warehouse.load(branch="checked")
    assert publish(warehouse)
    assert warehouse.offsets() == [(0, 0), (0, 1), (0, 2)]
    assert warehouse.load().ranges == []
    with pytest.raises(PipelineError, match="has no branch checked"):
        publish(warehouse)
    produce(warehouse.broker, warehouse.topic, [b"y"])
    warehouse.load(branch="checked")
    warehouse.load()
    with pytest.raises(PipelineError, match="main has changed since the branch checked began"):
        publish(warehouse)


def publish(warehouse: Warehouse) -> bool:
    place = warehouse.placed(branch="checked")
    return audit_tables(warehouse.spark, warehouse.audit_config(), place, publish=True).clean


def test_a_table_is_partitioned_by_transforms(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic)
    produce(warehouse.broker, warehouse.topic, [b"x"] * 20)
    warehouse.load(partition_by="hours(timestamp), bucket(4, key), truncate(100, offset)")

    fields = read_by_pyiceberg(warehouse.folder).spec().fields
    assert [str(field.transform) for field in fields] == ["hour", "bucket[4]", "truncate[100]"]
    assert len(warehouse.offsets()) == 20
    assert warehouse.audit().clean


def test_a_backfill_begins_at_a_time_and_the_rest_can_follow(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic)
    produce(warehouse.broker, warehouse.topic, [b"x"] * 10)
    assert warehouse.load(starting=RangeBounds(at_ms=START_MS + 6)).records == 4
    assert warehouse.offsets() == [(0, offset) for offset in range(6, 10)]
    assert not warehouse.audit().clean
    bounds = {"starting": RangeBounds(named=EARLIEST), "ending": RangeBounds(at_ms=START_MS + 6)}
    assert warehouse.load(**bounds).records == 6
    assert warehouse.offsets() == [(0, offset) for offset in range(10)]
    assert warehouse.audit().clean
