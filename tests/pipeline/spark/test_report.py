"""Tests `report`: its figures are correct, and its page has all of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.activity import Activity, events
from pipeline.load import LoadConfig, load
from pipeline.report import ReportConfig, report
from tests.interop.brokers import Broker
from tests.pipeline.spark.records import START_MS, activity, create, produce

MINUTE = 60_000

# (id, type, user, minutes after the start, page)
EVENTS = [
    ("1", "page_view", "ann", 0, "/a"),
    ("2", "search", "ann", 5, "/search"),
    ("3", "sign_up", "ann", 9, "/welcome"),
    ("4", "page_view", "ben", 1, "/a"),
    ("5", "page_view", "ben", 61, "/b"),
    ("6", "search", "ben", 62, "/search"),
    ("6", "search", "ben", 62, "/search"),
]


@pytest.fixture
def by_hand(odradek: Broker, topic: str) -> str:
    create(odradek, topic, 1)
    for name, kind, user, minutes, page in EVENTS:
        at = START_MS + minutes * MINUTE
        value = {"id": name, "type": kind, "user": user, "session": "s", "at": at, "page": page, "query": None}
        produce(odradek, topic, [json.dumps(value).encode()], at_ms=at + 400)
    produce(odradek, topic, [b"no event", None])
    return topic


def test_figures(spark: SparkSession, odradek: Broker, by_hand: str, tmp_path: Path) -> None:
    config = ReportConfig(str(tmp_path / "report"), (by_hand,), bootstrap=odradek.bootstrap, window="1 hour", top=2)
    tables = report(spark, config).tables

    assert [(row["type"], row["events"]) for row in tables["events_by_type"]] == [
        ("page_view", 2),
        ("search", 1),
        ("sign_up", 1),
        ("page_view", 1),
        ("search", 1),
    ]
    assert [(row["exact"], row["approximate"]) for row in tables["unique_users"]] == [(2, 2), (1, 1)]
    assert [(row["events"], row["sessions"]) for row in tables["session_sizes"]] == [(1, 1), (2, 1), (3, 1)]
    assert [(row["type"], row["sessions"]) for row in tables["funnel"]] == [
        ("page_view", 3),
        ("search", 2),
        ("sign_up", 1),
    ]
    assert [(row["page"], row["views"], row["users"]) for row in tables["top_pages"]] == [("/a", 2, 2), ("/b", 1, 1)]
    assert [(row["to_seconds"], row["events"], row["share"]) for row in tables["delays"]] == [(0.5, 6, 1.0)]
    assert tables["delay_quantiles"][0]["seconds"] == 0.4


def test_the_page_has_everything_in_itself(
    spark: SparkSession, odradek: Broker, topic: str, store: str, tmp_path: Path
) -> None:
    create(odradek, topic, 3)
    activity(odradek, topic, 2_000)
    load(spark, LoadConfig(odradek.bootstrap, store, (topic,)))
    made = report(spark, ReportConfig(str(tmp_path / "report"), (topic,), store=store))

    text = made.page.read_text()
    assert text.count("<img") == 6
    assert not re.search(r"(src|href)=\"(?!data:)", text)
    unique = len({event.id for event in events(Activity(2_000, 1, START_MS, 0.5))})
    assert f"<dt>events</dt><dd>{unique:,}</dd>" in text
    assert sum(row["events"] for row in made.tables["events_by_type"]) == unique
    assert spark.read.parquet(str(tmp_path / "report" / "top_pages")).count() == 15
