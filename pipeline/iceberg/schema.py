"""The columns of a table follow the records: new fields are added, types widened, and fields found by their names."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from pipeline.errors import PipelineError
from pipeline.iceberg.table import IcebergTable
from pipeline.source import SPARK_FAILURES


def fitted(table: IcebergTable, records: DataFrame) -> DataFrame:
    """Returns the records with the table's columns, after the table got the columns that it lacked.

    Raises PipelineError if a column has a type to which the table's can't be widened.
    """
    if not holds(columns(table), records.schema):
        widen(table, records.schema)
    return records.to(plain(columns(table)))


def columns(table: IcebergTable) -> StructType:
    """Returns the columns that a table has now, in all of its branches."""
    return table.spark.table(table.quoted).schema


def holds(wide: StructType, narrow: StructType) -> bool:
    """True if a table's schema has all columns of another, with the same types."""
    there = {field.name: field.dataType for field in plain(wide)}
    return all(there.get(field.name) == field.dataType for field in plain(narrow))


def plain(schema: StructType) -> StructType:
    """Returns a schema without comments and with nullable fields only, also within fields."""
    simple = StructType.fromDDL(", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in schema))
    assert isinstance(simple, StructType)
    return simple


def widen(table: IcebergTable, schema: StructType) -> None:
    """Adds the missing columns, and widens types: int to bigint, float to double, decimals. Nothing is removed."""
    spark = table.spark
    jvm = spark._jvm
    assert jvm is not None, "a session without a JVM, as by Spark Connect"
    wanted = jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(
        jvm.org.apache.spark.sql.types.DataType.fromJson(plain(schema).json())
    )
    try:
        table.committing(lambda java: java.updateSchema().caseSensitive(True).unionByNameWith(wanted).commit())
    except SPARK_FAILURES as error:
        text = str(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)
        cause = text.removeprefix("java.lang.IllegalArgumentException: ").splitlines()[0]
        raise PipelineError(f"{table.name}: its columns don't fit the records: {cause}") from None
