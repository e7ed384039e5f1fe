"""Tests loads into Iceberg tables: each offset once, also if two loads run at once. PyIceberg, which did not write the
tables, counts.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from pipeline.audit import AuditConfig
from pipeline.decode import Decoding
from pipeline.formats import Format
from pipeline.iceberg.audit import TableAudit, audit_tables
from pipeline.iceberg.catalog import Catalog
from pipeline.iceberg.load import TablePlace, load_tables
from pipeline.load import LoadConfig, LoadOutcome
from pipeline.ranges import EARLIEST, RangeBounds
from tests.interop.brokers import Broker
from tests.pipeline.spark.records import activity, create, produce


class Warehouse:
    """A catalog in SQLite, loads and audits of one topic, and PyIceberg's look at the table."""

    def __init__(self, spark: SparkSession, broker: Broker, topic: str, folder: Path) -> None:
        catalog = Catalog.of(f"jdbc:sqlite:{folder}/catalog.db", f"{folder}/tables")
        self.spark, self.broker, self.topic, self.folder = catalog.attached(spark), broker, topic, folder
        self.place = TablePlace(catalog, "kafka.loaded")

    def load(self, **options: object) -> LoadOutcome:
        at = options.pop("at", lambda _: None)
        config = LoadConfig(self.broker.bootstrap, "", (self.topic,), **options)
        return load_tables(self.spark, config, self.place, at)["kafka.loaded"]

    def audit(self) -> TableAudit:
        return audit_tables(self.spark, AuditConfig(self.broker.bootstrap, (self.topic,)), self.place)

    def offsets(self, table: str = "kafka.loaded") -> list[tuple[int, int]]:
        """Returns partition and offset of each row, sorted, by PyIceberg."""
        reader = SqlCatalog("odradek", uri=f"sqlite:///{self.folder}/catalog.db", warehouse=f"{self.folder}/tables")
        rows = reader.load_table(table).scan(selected_fields=("partition", "offset")).to_arrow()
        return sorted(zip(rows["partition"].to_pylist(), rows["offset"].to_pylist(), strict=True))


@pytest.fixture
def warehouse(spark: SparkSession, odradek: Broker, topic: str, tmp_path: Path) -> Warehouse:
    return Warehouse(spark, odradek, topic, tmp_path)


@pytest.mark.ci
def test_each_offset_is_loaded_once_and_the_next_run_continues(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic, 3)
    activity(warehouse.broker, warehouse.topic, 1_000)
    assert warehouse.load().records == 1_000
    assert warehouse.load().ranges == []
    activity(warehouse.broker, warehouse.topic, 200, seed=2)
    assert not warehouse.audit().clean
    assert warehouse.load().records == 200

    offsets = warehouse.offsets()
    assert len(offsets) == len(set(offsets)) == 1_200
    assert warehouse.audit().clean
    assert warehouse.load(starting=RangeBounds(named=EARLIEST)).records == 1_200
    assert warehouse.offsets() == offsets


def test_a_load_that_is_overtaken_loads_what_is_left(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic, 1)
    produce(warehouse.broker, warehouse.topic, [b"x"] * 10)
    reached: list[str] = []

    def other_is_faster(stage: str) -> None:
        reached.append(stage)
        if stage == "counted" and reached.count("counted") == 1:
            assert warehouse.load().records == 10
            produce(warehouse.broker, warehouse.topic, [b"y"] * 5)

    assert warehouse.load(at=other_is_faster).records == 5
    assert "overtaken" in reached
    assert warehouse.offsets() == [(0, offset) for offset in range(15)]
    assert warehouse.audit().clean


def test_another_program_that_changes_the_table_costs_no_second_read(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic, 1)
    produce(warehouse.broker, warehouse.topic, [b"x"] * 10)
    warehouse.load()
    produce(warehouse.broker, warehouse.topic, [b"y"] * 5)
    reached: list[str] = []

    def compacted(stage: str) -> None:
        reached.append(stage)
        if stage == "counted":
            warehouse.place.table(warehouse.spark, warehouse.topic).java().newAppend().commit()

    assert warehouse.load(at=compacted).records == 5
    assert "overtaken" not in reached
    assert warehouse.offsets() == [(0, offset) for offset in range(15)]


def test_aborted_records_are_no_gap_and_bad_values_are_dead_letters(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic, 1)
    producer = Producer({"bootstrap.servers": warehouse.broker.bootstrap, "transactional.id": warehouse.topic})
    producer.init_transactions()
    for value, end in ((b'{"a": 1}', producer.commit_transaction), (b"aborted", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(warehouse.topic, value)
        producer.flush()
        end()
    produce(warehouse.broker, warehouse.topic, [b"not json"])

    done = warehouse.load(decoding=Decoding(Format.JSON, "a int"))
    assert (done.records, done.quarantined) == (1, 1)
    assert warehouse.offsets() == [(0, 0)]
    assert warehouse.offsets("kafka.loaded_dead_letters") == [(0, 4)]
    audited = warehouse.audit()
    assert audited.clean
    assert audited.lines[0].empty == 3  # two markers, and the aborted record
