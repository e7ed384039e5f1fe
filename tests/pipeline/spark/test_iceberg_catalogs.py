"""Tests loads with each kind of catalog, two at once, and from brokers with SASL_SSL."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

from pipeline.activity import Activity
from pipeline.audit import AuditConfig
from pipeline.generate import GenerateConfig, generate
from pipeline.iceberg.audit import audit_tables
from pipeline.iceberg.catalog import Catalog
from pipeline.iceberg.load import TablePlace, load_tables
from pipeline.load import LoadConfig
from tests.interop.applications.postgres import USER, Postgres
from tests.interop.brokers import Broker
from tests.interop.secured_broker import ADMIN, ADMIN_PASSWORD, SecuredBroker
from tests.pipeline.spark.records import START_MS, activity, create
from tests.pipeline.spark.tables import NAME, Warehouse

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(params=["folder", "postgresql"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    if request.param == "folder":
        yield Catalog.of(str(tmp_path / "tables"), None)
        return
    server = Postgres(tmp_path)
    server.start()
    yield Catalog.of(f"jdbc:postgresql://127.0.0.1:{server.port}/postgres?user={USER}", str(tmp_path / "tables"))
    server.forget()


def test_loads_at_once_double_nothing(spark: SparkSession, odradek: Broker, topic: str, catalog: Catalog) -> None:
    create(odradek, topic, 2)
    activity(odradek, topic, 300, partitions=2)
    place = TablePlace(catalog, NAME)
    config = LoadConfig(odradek.bootstrap, "", (topic,))

    def load(_: int) -> int:
        return load_tables(catalog.attached(spark), config, place)[NAME].records

    with ThreadPoolExecutor(2) as both:
        assert sorted(both.map(load, range(2))) == [0, 300]
    attached = catalog.attached(spark)
    assert audit_tables(attached, AuditConfig(odradek.bootstrap, (topic,)), place).clean
    java = place.table(attached, topic).java()
    table = StaticTable.from_metadata(str(java.operations().current().metadataFileLocation()))
    assert table.scan().to_arrow().num_rows == 300


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[SecuredBroker]:
    broker = SecuredBroker(tmp_path)
    broker.format()
    broker.start()
    yield broker
    broker.stop()
    broker.forget()


def test_a_load_from_brokers_with_sasl_and_tls(
    spark: SparkSession, secured: SecuredBroker, topic: str, tmp_path: Path
) -> None:
    authority = str(secured.certificates.authority.certificate)
    client = {
        "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": ADMIN,
        "sasl.password": ADMIN_PASSWORD, "ssl.ca.location": authority,
    }  # fmt: skip
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    connector = {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": f'{module} required username="{ADMIN}" password="{ADMIN_PASSWORD}";',
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": authority,
    }
    bootstrap = f"127.0.0.1:{secured.ports['SASL']}"
    generate(GenerateConfig(bootstrap, topic, Activity(200, 1, START_MS, 0.5), 2, properties=client))
    there = Warehouse.of(spark, secured, topic, tmp_path)
    config = LoadConfig(bootstrap, "", (topic,), options=connector, properties=client)

    assert load_tables(there.spark, config, there.place)[NAME].records == 200
    audit = replace(there.audit_config(), bootstrap=bootstrap, options=connector, properties=client)
    assert audit_tables(there.spark, audit, there.place).clean
    assert len(there.offsets()) == 200
