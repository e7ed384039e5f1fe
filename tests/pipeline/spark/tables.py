"""A warehouse of Iceberg tables, with a catalog in SQLite, and PyIceberg, which reads what it did not write."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from pipeline.audit import AuditConfig
from pipeline.iceberg.audit import TableAudit, TableLine, audit_tables
from pipeline.iceberg.catalog import Catalog
from pipeline.iceberg.load import TablePlace, load_tables
from pipeline.iceberg.table import IcebergTable
from pipeline.load import LoadConfig, LoadOutcome
from tests.interop.brokers import Broker

NAME = "kafka.loaded"
DEAD_NAME = f"{NAME}_dead_letters"


def catalog_in(folder: Path | str) -> Catalog:
    """Returns the catalog of a folder of tests."""
    return Catalog.of(f"jdbc:sqlite:{folder}/catalog.db", f"{folder}/tables")


def place_in(folder: Path | str) -> TablePlace:
    """Returns the place of the table of a folder."""
    return TablePlace(catalog_in(folder), NAME)


def read_by_pyiceberg(folder: Path, table: str = NAME) -> Table:
    uri, warehouse = f"sqlite:///{folder}/catalog.db", f"{folder}/tables"
    return SqlCatalog("odradek", uri=uri, warehouse=warehouse).load_table(table)


def offsets_in(folder: Path, table: str = NAME) -> list[tuple[int, int]]:
    """Returns partition and offset of each row, sorted, by PyIceberg."""
    rows = read_by_pyiceberg(folder, table).scan(selected_fields=("partition", "offset")).to_arrow()
    return sorted(zip(rows["partition"].to_pylist(), rows["offset"].to_pylist(), strict=True))


def counted_in(folder: Path) -> tuple[int, int]:
    """Returns the numbers of rows and of distinct offsets, by PyIceberg."""
    rows = read_by_pyiceberg(folder).scan(selected_fields=("partition", "offset")).to_arrow()
    return rows.num_rows, rows.group_by(["partition", "offset"]).aggregate([]).num_rows


@dataclass
class Warehouse:
    """Loads and audits of one topic, and PyIceberg's look at its table."""

    spark: SparkSession
    broker: Broker
    topic: str
    folder: Path
    place: TablePlace

    @classmethod
    def of(cls, spark: SparkSession, broker: Broker, topic: str, folder: Path) -> Warehouse:
        place = place_in(folder)
        return cls(place.catalog.attached(spark), broker, topic, folder, place)

    @property
    def table(self) -> IcebergTable:
        return self.place.table(self.spark, self.topic)

    def placed(self, **options: object) -> TablePlace:
        """Returns the place with the options that are options of a place."""
        return replace(self.place, **{name: options[name] for name in options if name in PLACE})

    def load(self, **options: object) -> LoadOutcome:
        at = options.pop("at", lambda _: None)
        others = {name: value for name, value in options.items() if name not in PLACE}
        config = LoadConfig(self.broker.bootstrap, "", (self.topic,), **others)
        return load_tables(self.spark, config, self.placed(**options), at)[NAME]

    def audit_config(self) -> AuditConfig:
        return AuditConfig(self.broker.bootstrap, (self.topic,))

    def audit(self) -> TableAudit:
        return audit_tables(self.spark, self.audit_config(), self.place)

    def audit_line(self) -> TableLine:
        """Returns the audit of the topic's only partition."""
        (line,) = self.audit().lines
        return line

    def offsets(self, table: str = NAME) -> list[tuple[int, int]]:
        return offsets_in(self.folder, table)

    def rows(self, *columns: str) -> list[tuple[object, ...]]:
        """Returns the rows of the table by PyIceberg, sorted by partition and offset."""
        found = (
            read_by_pyiceberg(self.folder)
            .scan()
            .to_arrow()
            .sort_by([("partition", "ascending"), ("offset", "ascending")])
        )
        return list(zip(*(found[name].to_pylist() for name in columns), strict=True))


PLACE = ("branch", "partition_by", "upsert")
