"""report: the figures of an activity stream, as Parquet and as a page with plots."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from pipeline import analytics
from pipeline.cluster import Cluster
from pipeline.errors import PipelineError
from pipeline.iceberg.load import TablePlace
from pipeline.iceberg.rows import Tables
from pipeline.page import PageHead, page
from pipeline.ranges import Range
from pipeline.source import SPARK_FAILURES, explained, read_files, read_topics
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class ReportConfig:
    """The options of a report: the store, tables or topics with the events, the output folder, and the definitions of
    window, session and funnel.
    """

    out: str
    topics: tuple[str, ...]
    store: str | None = None
    tables: TablePlace | None = None
    bootstrap: str | None = None
    window: str = "10 minutes"
    gap: str = "30 minutes"
    funnel: tuple[str, ...] = ("page_view", "search", "sign_up")
    top: int = 15
    options: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """The page, and the rows of each table by name."""

    page: Path
    tables: Mapping[str, list[Row]]


def report(spark: SparkSession, config: ReportConfig) -> Report:
    """Writes the report to `out` and replaces an earlier one.

    Raises PipelineError; then the earlier report is unchanged.
    """
    out = Path(config.out).absolute()
    made = out.with_name(f".{out.name}.new")
    shutil.rmtree(made, ignore_errors=True)
    records, ranges = records_of(spark, config)
    events = analytics.events_of(records).persist()
    try:
        tables = written(tables_of(events, config), made)
        facts = facts_of(records, events, config)
    except SPARK_FAILURES as error:
        raise explained(error, Cluster(config.bootstrap or ""), ranges) from error
    finally:
        events.unpersist()
    (made / "report.html").write_text(page(facts, tables), encoding="utf-8")
    shutil.rmtree(out, ignore_errors=True)
    made.rename(out)
    return Report(out / "report.html", tables)


def records_of(spark: SparkSession, config: ReportConfig) -> tuple[DataFrame, list[Range]]:
    """Returns the records of the topics, from the store or the tables if they are named, and the ranges that are
    read."""
    if config.tables is not None:
        return Tables(spark, config.tables, config.topics).rows(), []
    if config.store is not None:
        files = Store(config.store).reading().files_of(config.topics)
        if not files:
            raise PipelineError(f"{config.store} has no records of {', '.join(config.topics)}")
        return read_files(spark, Store(config.store).root, files), []
    if config.bootstrap is None:
        raise PipelineError("a report needs a --store, a --catalog or a --bootstrap")
    cluster = Cluster(config.bootstrap, config.properties)
    keys = [key for topic in cluster.topics(config.topics) for key in topic.partition_keys()]
    first, end = cluster.start_offsets(keys), cluster.end_offsets(keys)
    ranges = [Range(*key, first[key], end[key]) for key in keys if first[key] < end[key]]
    return read_topics(spark, cluster, ranges, config.options), ranges


def tables_of(events: DataFrame, config: ReportConfig) -> dict[str, DataFrame]:
    visits = analytics.sessions(events, config.gap)
    return {
        "events_by_type": analytics.by_type(events, config.window),
        "unique_users": analytics.unique_users(events, config.window),
        "session_sizes": analytics.session_sizes(visits),
        "top_pages": analytics.top_pages(events, config.top),
        "funnel": analytics.funnel(visits, config.funnel),
        "delays": analytics.delays(events),
        "delay_quantiles": analytics.delay_quantiles(events),
    }


def written(tables: Mapping[str, DataFrame], out: Path) -> dict[str, list[Row]]:
    """Writes each table as one Parquet file, and returns its rows. The tables are small."""
    rows = {}
    for name, frame in tables.items():
        frame.coalesce(1).write.parquet(str(out / name))
        rows[name] = frame.sparkSession.read.parquet(str(out / name)).collect()
    return rows


def facts_of(records: DataFrame, events: DataFrame, config: ReportConfig) -> PageHead:
    row = events.agg(f.count("*"), f.count_distinct("user"), f.min("happened"), f.max("happened")).collect()[0]
    return PageHead(
        topics=config.topics,
        source=config.store or (config.tables and config.tables.catalog.uri) or config.bootstrap or "",
        records=records.count(),
        events=row[0],
        users=row[1],
        first=row[2],
        last=row[3],
        gap=config.gap,
        window=config.window,
        made=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    )
