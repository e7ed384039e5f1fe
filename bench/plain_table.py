"""Loads a topic into an Iceberg table with Spark's own source and Iceberg's own writer, as a measure for our work.

python -m bench.plain_table --bootstrap H:P --topic T --catalog URI --warehouse DIR --table NAMESPACE.TABLE
    --metrics-file FILE
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from pyspark.sql import functions as f

from pipeline import session
from pipeline.cluster import Cluster
from pipeline.iceberg.catalog import NAME, Catalog
from pipeline.metrics import metrics_text, write_text


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("--bootstrap", "--topic", "--catalog", "--warehouse", "--table", "--metrics-file"):
        parser.add_argument(name, required=True)
    options = parser.parse_args()
    catalog = Catalog.of(options.catalog, options.warehouse)
    spark = catalog.attached(session.start("plain", packages=catalog.packages))
    table = f"{NAME}.{options.table}"
    began = time.monotonic()
    source = {
        "kafka.bootstrap.servers": options.bootstrap,
        "subscribe": options.topic,
        "startingOffsets": "earliest",
        "endingOffsets": "latest",
        "includeHeaders": "true",
    }
    records = spark.read.format("kafka").options(**source).load()
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {table.rpartition('.')[0]}")
    columns = ("partition", "offset", "timestamp", "timestampType", "key", "value", "headers")
    records.select(*columns).writeTo(table).using("iceberg").partitionedBy(f.partitioning.days("timestamp")).create()
    seconds = time.monotonic() - began
    write_text(Path(options.metrics_file), metrics_text(spark, Cluster(options.bootstrap), {}, seconds))
    count = spark.table(f"{table}.snapshots").collect()[0]["summary"]["added-records"]
    sys.stdout.write(f"{options.table}: {count} records, 0 quarantined, run plain\n  in {seconds:.1f} s\n")


if __name__ == "__main__":
    main()
