"""Decodes values by a given schema. A value that can't be decoded keeps its bytes and gets a reason."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import StringType, StructField, StructType

from pipeline.errors import PipelineError
from pipeline.formats import Format

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


@dataclass(frozen=True, slots=True)
class Decoding:
    """A format and its schema: for JSON a DDL (`user string, at bigint`) or Spark's JSON of a type, for Avro its
    .avsc.
    """

    format: Format = Format.BYTES
    schema: str = ""
    schema_id: int | None = None

    @classmethod
    def of(cls, name: str, schema_file: str | None, schema_id: int | None = None) -> Decoding:
        """Returns the decoding. Raises PipelineError if the schema is missing or can't be read."""
        format_ = Format(name)
        if format_ is Format.BYTES:
            return cls()
        if schema_file is None:
            raise PipelineError(f"values in {name} need --schema FILE")
        try:
            return cls(format_, Path(schema_file).read_text(), schema_id)
        except (OSError, UnicodeDecodeError) as error:
            raise PipelineError(f"{schema_file}: {error}") from None


def decoded(frame: DataFrame, decoding: Decoding) -> DataFrame:
    """Returns the frame with `data`, the decoded value, and `reason`, which is null if the value was decoded."""
    if decoding.format is Format.BYTES:
        return frame
    if decoding.format is Format.JSON:
        return _from_json(frame, decoding.schema)
    return _from_avro(frame, decoding)


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
    parsed = from_avro(item, array_of(decoding.schema), {"mode": "PERMISSIVE"})
    well = f.size(ITEMS) == 1
    fault = f.when(value.isNotNull() & ~f.coalesce(well, f.lit(False)), f.lit("not Avro of the given schema"))
    decoded_ = frame.withColumn(ITEMS, parsed).withColumn(REASON, f.coalesce(reason, fault))
    return decoded_.withColumn(DATA, f.when(well, f.get(ITEMS, 0))).drop(ITEMS)


def array_of(schema: str) -> str:
    """Returns the Avro schema of an array of a schema's values. Raises PipelineError."""
    try:
        return json.dumps({"type": "array", "items": json.loads(schema)})
    except ValueError as error:
        raise PipelineError(f"it is not a valid Avro schema: {error}") from None


def _frame_fault(value: Column, schema_id: int | None) -> Column:
    found_id = f.conv(f.hex(f.substring(value, 2, 4)), 16, 10).cast("bigint")
    fault = f.when(f.octet_length(value) < CONFLUENT_HEADER_BYTES, f.lit("shorter than the five bytes of its frame"))
    fault = fault.when(f.hex(f.substring(value, 1, 1)) != "00", f.lit("its frame does not begin with a zero byte"))
    if schema_id is not None:
        fault = fault.when(found_id != schema_id, f.concat(f.lit("schema id "), found_id, f.lit(f", not {schema_id}")))
    return fault
