"""Tests values that are decoded by a given schema; undecodable values go to the quarantine, with their reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import to_avro

from pipeline.decode import Decoding
from pipeline.errors import PipelineError
from pipeline.load import LoadConfig, load
from tests.interop.brokers import Broker
from tests.pipeline.spark.records import create, is_complete, produce, rows

AVRO = json.dumps(
    {"type": "record", "name": "Click", "fields": [{"name": "user", "type": "string"}, {"name": "at", "type": "long"}]}
)


def encoded(spark: SparkSession, user: str, at: int) -> bytes:
    frame = spark.range(1).select(
        to_avro(f.struct(f.lit(user).alias("user"), f.lit(at).cast("long").alias("at")), AVRO)
    )
    return bytes(frame.collect()[0][0])


def schema(folder: Path, text: str) -> str:
    file = folder / "schema"
    file.write_text(text)
    return str(file)


def test_json(spark: SparkSession, odradek: Broker, topic: str, store: str, tmp_path: Path) -> None:
    create(odradek, topic, 1)
    produce(odradek, topic, [b'{"user":"ann","at":5}', b"no json", None, b'{"user":"ben","at":"x"}'])
    decoding = Decoding.of("json", schema(tmp_path, "user string, at bigint"))
    done = load(spark, LoadConfig(odradek.bootstrap, store, (topic,), decoding=decoding))

    assert (done.records, done.quarantined) == (2, 2)
    assert [row["data"] and tuple(row["data"]) for row in rows(spark, store)] == [("ann", 5), None]
    bad = rows(spark, store, quarantined=True)
    assert [(row["offset"], row["value"], row["reason"]) for row in bad] == [
        (1, b"no json", "not JSON of the given schema"),
        (3, b'{"user":"ben","at":"x"}', "not JSON of the given schema"),
    ]
    assert is_complete(spark, odradek, topic, store)


def test_avro(spark: SparkSession, odradek: Broker, topic: str, store: str, tmp_path: Path) -> None:
    create(odradek, topic, 1)
    produce(odradek, topic, [encoded(spark, "ann", 5), b"\xff\xff", None])
    decoding = Decoding.of("avro", schema(tmp_path, AVRO))
    done = load(spark, LoadConfig(odradek.bootstrap, store, (topic,), decoding=decoding))

    assert (done.records, done.quarantined) == (2, 1)
    assert [row["data"] and tuple(row["data"]) for row in rows(spark, store)] == [("ann", 5), None]
    assert rows(spark, store, quarantined=True)[0]["reason"] == "not Avro of the given schema"


def test_avro_in_confluents_frame(spark: SparkSession, odradek: Broker, topic: str, store: str, tmp_path: Path) -> None:
    create(odradek, topic, 1)
    body = encoded(spark, "ann", 5)
    framed = [b"\0\0\0\0\7" + body, b"\0\0\0\0\x08" + body, b"\1\0\0\0\7" + body, b"\0\0", b"\0\0\0\0\7\xff"]
    produce(odradek, topic, [*framed])
    decoding = Decoding.of("confluent-avro", schema(tmp_path, AVRO), 7)
    done = load(spark, LoadConfig(odradek.bootstrap, store, (topic,), decoding=decoding))

    assert (done.records, done.quarantined) == (1, 4)
    assert [tuple(row["data"]) for row in rows(spark, store)] == [("ann", 5)]
    assert [row["reason"] for row in rows(spark, store, quarantined=True)] == [
        "schema id 8, not 7",
        "its frame does not begin with a zero byte",
        "shorter than the five bytes of its frame",
        "not Avro of the given schema",
    ]


def test_a_schema_that_is_none(spark: SparkSession, odradek: Broker, topic: str, store: str, tmp_path: Path) -> None:
    create(odradek, topic, 1)
    produce(odradek, topic, [b"x"])
    decoding = Decoding.of("json", schema(tmp_path, "user strin g,"))
    with pytest.raises(PipelineError, match="neither a DDL nor a struct in JSON"):
        load(spark, LoadConfig(odradek.bootstrap, store, (topic,), decoding=decoding))
    with pytest.raises(PipelineError, match="values in avro need --schema"):
        Decoding.of("avro", None)
