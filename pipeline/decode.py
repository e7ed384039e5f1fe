"""Decodes values: by a given schema, by the schemas of a registry, or for JSON by a schema inferred from the values.

A value that can't be decoded keeps its bytes and gets a reason.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType

from pipeline.errors import PipelineError
from pipeline.formats import Format
from pipeline.registry import UnusableSchema, registry_at

REASON = "reason"
DATA = "data"
MALFORMED = "_malformed"
CONFLUENT_HEADER_BYTES = 5
"""A zero byte and the schema id, four bytes, before the Avro bytes."""


ITEMS = "_items"
ONE_ITEM, NO_MORE_ITEMS = "02", "00"
"""The bytes around the only item of an Avro array, in hex.

Spark turns an undecodable record into a record of nulls, which looks like a real one; but it turns an undecodable array
into null. With the array it also detects bytes left over after a record.
"""


MAX_SCHEMAS = 100
"""Most schemas by which a run decodes values. Each adds a decoder to the plan of the query."""

MAX_IDS = 1_000
"""Most ids for which a run asks the registry. Producers choose the ids of their values."""

MAX_FIELDS = 1_000
"""Most fields of an inferred schema: producers choose their names, and no field is ever removed."""

MAX_COLONS = 100_000
"""Most colons of a value in an inference, hence most keys: each would be a field before the fields are counted."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """A format and its schema: for JSON a DDL (`user string, at bigint`) or Spark's JSON of a type, for Avro its
    .avsc.

    Without a schema, `settled` finds it: in the values (JSON), or in the registry, by the ids in the frames; then
    `writers` has the schemas of the values by id, and `unusable` the reasons for which values of other ids aren't
    decoded.
    """

    format: Format = Format.BYTES
    schema: str = ""
    schema_id: int | None = None
    registry: str | None = None
    writers: Mapping[int, str] = field(default_factory=dict)
    unusable: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, name: str, schema_file: str | None, schema_id: int | None = None, registry: str | None = None
    ) -> Decoding:
        """Returns the decoding. Raises PipelineError if the schema is missing or can't be read."""
        format_ = Format(name)
        if format_ is Format.BYTES:
            return cls()
        if registry is not None and format_ is not Format.CONFLUENT_AVRO:
            raise PipelineError(f"--schema-registry: values in {name} have no ids of schemas; confluent-avro has")
        if schema_file is None:
            if format_ is Format.JSON or registry is not None:
                return cls(format_, "", schema_id, registry)
            raise PipelineError(f"values in {name} need --schema FILE")
        try:
            return cls(format_, Path(schema_file).read_text(), schema_id, registry)
        except (OSError, UnicodeDecodeError) as error:
            raise PipelineError(f"{schema_file}: {error}") from None


def decoded(frame: DataFrame, decoding: Decoding) -> DataFrame:
    """Returns the frame with `data`, the decoded value, and `reason`, which is null if the value was decoded."""
    if decoding.format is Format.BYTES:
        return frame
    if not decoding.schema:
        raise PipelineError(
            f"values in {decoding.format.value} need --schema FILE, except in Iceberg tables (--catalog)"
        )
    if decoding.format is Format.JSON:
        return _from_json(frame, decoding.schema)
    return _from_avro(frame, decoding)


def settled(frame: DataFrame, decoding: Decoding, there: DataType | None) -> Decoding:
    """Returns the decoding with its schemas. `there` is the table's type of `data`: a field that the table has keeps
    its type.

    Raises PipelineError.
    """
    if decoding.format is Format.JSON and not decoding.schema:
        check_keys(frame)
        fields = merged(there, inferred(frame))
        if field_count(fields) > MAX_FIELDS:
            raise PipelineError(TOO_MANY_FIELDS)
        if isinstance(fields, StructType) and fields.fields:
            return replace(decoding, schema=fields.json())
        if frame.where(f.col("value").isNotNull()).isEmpty():
            return Decoding()
        raise PipelineError("no value is a JSON object with fields, so no schema can be inferred: use --schema FILE")
    if decoding.registry is not None:
        return _registered(frame, decoding, decoding.registry)
    return decoding


TOO_MANY_FIELDS = f"the values have more than {MAX_FIELDS} fields, so no schema is inferred: use --schema FILE"


def check_keys(frame: DataFrame) -> None:
    """Raises PipelineError if the values have more keys than an inference should read: it would make each a field."""
    texts = texts_of(frame)
    colons = f.length("value") - f.length(f.replace("value", f.lit(":"), f.lit("")))
    keys = f.when(colons > MAX_COLONS, f.array(f.lit(None).cast("string"))).otherwise(f.json_object_keys("value"))
    found = texts.select(f.explode(keys).alias("key")).distinct().limit(MAX_FIELDS + 1).collect()
    if any(row["key"] is None for row in found):
        raise PipelineError(
            f"a value has more than {MAX_COLONS} keys or colons, so no schema is inferred: use --schema FILE"
        )
    if len(found) > MAX_FIELDS:
        raise PipelineError(TOO_MANY_FIELDS)


def texts_of(frame: DataFrame) -> DataFrame:
    return frame.where(f.col("value").isNotNull()).select(f.col("value").cast("string").alias("value"))


def field_count(type_: DataType) -> int:
    """Returns the number of fields of a type, with the fields of its fields."""
    if isinstance(type_, ArrayType):
        return field_count(type_.elementType)
    return sum(1 + field_count(entry.dataType) for entry in type_) if isinstance(type_, StructType) else 0


def inferred(frame: DataFrame) -> StructType:
    """Returns the type of JSON values, without those that are malformed."""
    spark = frame.sparkSession
    jvm = spark._jvm
    assert jvm is not None, "a session without a JVM, as by Spark Connect"
    texts = texts_of(frame)
    reader = spark._jsparkSession.read().option("mode", "DROPMALFORMED")
    dataset = getattr(texts._jdf, "as")(jvm.org.apache.spark.sql.Encoders.STRING())
    return StructType.fromJson(json.loads(reader.json(dataset).schema().json()))


def merged(there: DataType | None, new: DataType) -> DataType:
    """Returns a table's type with the new fields of the other type. The table's fields keep their types."""
    if isinstance(there, StructType) and isinstance(new, StructType):
        names = {entry.name for entry in there}
        of_new = {entry.name: entry.dataType for entry in new}
        kept = [
            StructField(entry.name, merged(entry.dataType, of_new.get(entry.name, entry.dataType))) for entry in there
        ]
        return StructType([*kept, *(entry for entry in new if entry.name not in names)])
    if isinstance(there, ArrayType) and isinstance(new, ArrayType):
        return ArrayType(merged(there.elementType, new.elementType))
    return new if there is None else there


def _registered(frame: DataFrame, decoding: Decoding, registry: str) -> Decoding:
    """Returns the decoding with the schemas of the ids in the frames, the most frequent ids first. Without a schema of
    its own, values are read as the schema with the largest id, by Avro's rules of resolution."""
    framed = frame.where(_frame_fault(f.col("value"), decoding.schema_id).isNull() & f.col("value").isNotNull())
    counts = framed.groupBy(_schema_id(f.col("value")).alias("id")).count()
    rows = counts.orderBy(f.desc("count"), "id").limit(MAX_IDS).collect()
    writers: dict[int, str] = {}
    unusable: dict[int, str] = {}
    with registry_at(registry) as schemas:
        for row in rows:
            number = int(row["id"])
            try:
                writers[number] = schemas.schema(number)
            except UnusableSchema as error:
                unusable[number] = str(error)
            if len(writers) == MAX_SCHEMAS:
                break
    if writers or decoding.schema:
        schema = decoding.schema or writers[max(writers)]
        return replace(decoding, writers=writers, unusable=unusable, schema=schema)
    if frame.where(f.col("value").isNotNull()).isEmpty():
        return Decoding()
    reason = next(iter(unusable.values()), "no value has the frame of confluent-avro")
    raise PipelineError(f"no value can be decoded: {reason}: check --schema-registry, or use --schema FILE")


def _from_json(frame: DataFrame, schema: str) -> DataFrame:
    fields = json_schema(schema)
    wider = StructType([*fields.fields, StructField(MALFORMED, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": MALFORMED}
    parsed = f.from_json(f.col("value").cast("string"), wider, options)
    bad = f.col("value").isNotNull() & (f.col("_data").isNull() | f.col(f"_data.{MALFORMED}").isNotNull())
    reason = f.when(bad, f.lit("not JSON of the given schema"))
    data = f.when(~bad & f.col("value").isNotNull(), f.col("_data").dropFields(MALFORMED))
    return frame.withColumn("_data", parsed).withColumn(REASON, reason).withColumn(DATA, data).drop("_data")


def json_schema(text: str) -> StructType:
    """Returns the schema. Raises PipelineError for a text that is neither a DDL nor Spark's JSON of a struct."""
    try:
        if text.lstrip().startswith("{"):
            return StructType.fromJson(json.loads(text))
        fields = StructType.fromDDL(text)
        if isinstance(fields, StructType):
            return fields
    except Exception as error:  # the parser's own exceptions come from the JVM
        raise PipelineError(f"the schema is neither a DDL nor a struct in JSON: {str(error).splitlines()[0]}") from None
    raise PipelineError(f"the schema is a {fields.simpleString()}, not a struct")


def _from_avro(frame: DataFrame, decoding: Decoding) -> DataFrame:
    value, reason = f.col("value"), f.lit(None).cast("string")
    body = value
    if decoding.format is Format.CONFLUENT_AVRO:
        reason = _frame_fault(value, decoding.schema_id)
        body = f.when(reason.isNull(), f.expr(f"substring(value, {CONFLUENT_HEADER_BYTES + 1})"))
    item = f.concat(f.unhex(f.lit(ONE_ITEM)), body, f.unhex(f.lit(NO_MORE_ITEMS)))
    reader = array_of(decoding.schema)
    parsed = from_avro(item, reader, {"mode": "PERMISSIVE"})
    if decoding.registry is not None:
        number = _schema_id(value)
        by_id = partial(from_avro, item, options={"mode": "PERMISSIVE", "avroSchema": reader})
        schemas = {own: array_of(schema) for own, schema in decoding.writers.items()}
        never = f.when(f.lit(False), parsed)  # gives the type, if no id is known
        parsed = f.coalesce(*(f.when(number == own, by_id(schema)) for own, schema in schemas.items()), never)
        reason = f.coalesce(reason, f.when(value.isNotNull() & ~number.isin(list(schemas)), _reason(number, decoding)))
    well = f.size(ITEMS) == 1
    fault = f.when(value.isNotNull() & ~f.coalesce(well, f.lit(False)), f.lit("not Avro of the given schema"))
    decoded_ = frame.withColumn(ITEMS, parsed).withColumn(REASON, f.coalesce(reason, fault))
    return decoded_.withColumn(DATA, f.when(well, f.get(ITEMS, 0))).drop(ITEMS)


def _reason(number: Column, decoding: Decoding) -> Column:
    """Returns the reason for which values of this id aren't decoded."""
    rare = f.concat(f.lit("schema id "), number, f.lit(" is not among the most frequent of the run"))
    if not decoding.unusable:
        return rare
    entries = ((f.lit(own).cast("bigint"), f.lit(reason)) for own, reason in decoding.unusable.items())
    return f.coalesce(f.try_element_at(f.create_map(*(word for entry in entries for word in entry)), number), rare)


def array_of(schema: str) -> str:
    """Returns the Avro schema of an array of a schema's values. Raises PipelineError."""
    try:
        return json.dumps({"type": "array", "items": json.loads(schema)})
    except (ValueError, RecursionError) as error:
        raise PipelineError(f"it is not a valid Avro schema: {error}") from None


def _schema_id(value: Column) -> Column:
    return f.conv(f.hex(f.substring(value, 2, 4)), 16, 10).cast("bigint")


def _frame_fault(value: Column, schema_id: int | None) -> Column:
    found_id = _schema_id(value)
    fault = f.when(f.octet_length(value) < CONFLUENT_HEADER_BYTES, f.lit("shorter than the five bytes of its frame"))
    fault = fault.when(f.hex(f.substring(value, 1, 1)) != "00", f.lit("its frame does not begin with a zero byte"))
    if schema_id is not None:
        fault = fault.when(found_id != schema_id, f.concat(f.lit("schema id "), found_id, f.lit(f", not {schema_id}")))
    return fault
