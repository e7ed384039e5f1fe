"""The catalog of a job's tables: a folder, a database by JDBC, or a REST server; and what Spark needs for it."""

from __future__ import annotations

import fcntl
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from pipeline.errors import PipelineError

ICEBERG_PACKAGE: Final = "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0"
DRIVER_PACKAGES: Final = {
    "sqlite": "org.xerial:sqlite-jdbc:3.50.3.0",
    "postgresql": "org.postgresql:postgresql:42.7.7",
}
"""The JDBC drivers of catalogs, by the second word of a URI."""

NAME: Final = "odradek"
"""The catalog's name in Spark: `--set spark.sql.catalog.odradek.…` sets its other properties."""
PREFIX: Final = f"spark.sql.catalog.{NAME}"
LOCK: Final = ".odradek-lock"
BUSY_TIMEOUT_MS: Final = 60_000
"""Time that SQLite waits for another writer of its file."""


class CatalogKind(Enum):
    """The kinds of catalogs, by Iceberg's names."""

    HADOOP = "hadoop"
    JDBC = "jdbc"
    REST = "rest"


@dataclass(frozen=True, slots=True)
class Catalog:
    """A catalog by its URI: a folder (or hdfs://…), jdbc:sqlite:FILE, jdbc:postgresql://…, or http(s)://…"""

    uri: str
    warehouse: str | None = None

    @classmethod
    def of(cls, uri: str, warehouse: str | None) -> Catalog:
        """Returns the catalog. Raises PipelineError for a URI of another kind, or if the warehouse is missing."""
        catalog = cls(uri, warehouse)
        if catalog.kind is CatalogKind.JDBC:
            if catalog.driver not in DRIVER_PACKAGES:
                raise PipelineError(f"--catalog {uri}: expected jdbc:sqlite:FILE or jdbc:postgresql://HOST/DATABASE")
            if warehouse is None:
                raise PipelineError(f"--catalog {uri} needs --warehouse DIR, the folder of the tables' files")
        if catalog.kind is CatalogKind.HADOOP and warehouse is not None:
            raise PipelineError(f"--warehouse {warehouse}: the catalog {uri} is a folder itself")
        return catalog

    @property
    def kind(self) -> CatalogKind:
        if self.uri.startswith("jdbc:"):
            return CatalogKind.JDBC
        return CatalogKind.REST if re.match(r"https?://", self.uri) else CatalogKind.HADOOP

    @property
    def driver(self) -> str:
        return self.uri.split(":")[1]

    @property
    def packages(self) -> tuple[str, ...]:
        """The jars that Spark gets from Maven Central."""
        return (ICEBERG_PACKAGE, *([DRIVER_PACKAGES[self.driver]] if self.kind is CatalogKind.JDBC else []))

    def properties(self) -> dict[str, str]:
        """Returns the settings of Spark that name the catalog."""
        settings = {
            PREFIX: "org.apache.iceberg.spark.SparkCatalog",
            f"{PREFIX}.type": self.kind.value,
            f"{PREFIX}.cache-enabled": "false",  # a run compares with the last snapshot, not with a remembered one
        }
        if self.kind is CatalogKind.HADOOP:
            return {**settings, f"{PREFIX}.warehouse": located(self.uri)}
        settings[f"{PREFIX}.uri"] = self.uri
        if self.warehouse is not None:
            rest = self.kind is CatalogKind.REST  # whose warehouses have names
            settings[f"{PREFIX}.warehouse"] = self.warehouse if rest else located(self.warehouse)
        if self.kind is CatalogKind.JDBC:
            settings[f"{PREFIX}.jdbc.schema-version"] = "V1"
            if self.driver == "sqlite":
                settings[f"{PREFIX}.jdbc.busy_timeout"] = str(BUSY_TIMEOUT_MS)
        return settings

    def attached(self, spark: SparkSession, settings: Mapping[str, str] | None = None) -> SparkSession:
        """Returns a session with this catalog, of the same Spark."""
        session = spark.newSession()
        chosen = {name: value for name, value in (settings or {}).items() if name.startswith(PREFIX)}
        for name, value in {**self.properties(), **chosen}.items():
            session.conf.set(name, value)
        return session

    @contextmanager
    def exclusive(self, table: str) -> Iterator[None]:
        """Lets one process at a time write to a table of a local folder.

        Iceberg commits there by a rename, which replaces the other writer's commit on a local file system. All other
        catalogs compare and swap, so nothing is locked.
        """
        folder = self.local_folder()
        if folder is None:
            yield
            return
        place = folder.joinpath(*table.split("."))
        place.mkdir(parents=True, exist_ok=True)
        with (place / LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def local_folder(self) -> Path | None:
        """Returns the folder of a hadoop catalog on a local file system."""
        if self.kind is not CatalogKind.HADOOP:
            return None
        scheme, _, path = self.uri.rpartition("://")
        return Path(path).absolute() if scheme in ("", "file") else None


def located(place: str) -> str:
    """Returns a URI of a folder: Spark's executors may run elsewhere, with other working directories."""
    return place if re.match(r"[a-z0-9]+:", place) else str(Path(place).absolute())
