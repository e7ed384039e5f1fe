"""The figures of an activity stream: data frames of events to data frames of figures.

Events have `id`, `type`, `user`, `page`, `happened` and `received` (timestamps). A duplicate event counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

EVENT = "id string, type string, user string, session string, at bigint, page string, query string"
"""The schema of the JSON that `generate` writes; other streams need these fields, too."""

DELAY_BOUNDS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
"""Bucket bounds, from a good network to a phone in a tunnel."""
QUANTILES = (0.5, 0.9, 0.99, 0.999)
APPROXIMATE_ERROR = 0.02


def parsed(records: DataFrame) -> DataFrame:
    """Parses the events in records of `load`, `stream` or topics. Skips values that are not events of this schema."""
    events = records.select(f.from_json(f.col("value").cast("string"), EVENT).alias("e"), "timestamp")
    return (
        events.where(f.col("e.id").isNotNull() & f.col("e.at").isNotNull())
        .select("e.*", f.timestamp_millis("e.at").alias("happened"), f.col("timestamp").alias("received"))
        .drop("at")
    )


def events_of(records: DataFrame) -> DataFrame:
    """Returns the events of `parsed`, each id only once."""
    return parsed(records).dropDuplicates(["id"])


def by_type_unordered(events: DataFrame, window: str) -> DataFrame:
    """Counts events of each type per window, in no order, because a stream has none."""
    return (
        events.groupBy(f.window("happened", window), "type")
        .agg(f.count("*").alias("events"))
        .select(f.col("window.start").alias("window_start"), "type", "events")
    )


def by_type(events: DataFrame, window: str) -> DataFrame:
    """Counts events of each type per window, in order."""
    return by_type_unordered(events, window).orderBy("window_start", "type")


def unique_users(events: DataFrame, window: str) -> DataFrame:
    """Counts users per window, both exactly and as an estimate (HyperLogLog++, within two per cent)."""
    return (
        events.groupBy(_window(window))
        .agg(
            f.count_distinct("user").alias("exact"),
            f.approx_count_distinct("user", APPROXIMATE_ERROR).alias("approximate"),
        )
        .orderBy("window_start")
    )


def sessions(events: DataFrame, gap: str) -> DataFrame:
    """Returns the sessions of users: events without a pause of `gap` or longer between them."""
    span = f.session_window("happened", gap)
    return (
        events.groupBy("user", span)
        .agg(
            f.count("*").alias("events"),
            f.min("happened").alias("began"),
            f.max("happened").alias("ended"),
            f.sort_array(f.collect_list(f.struct("happened", "type"))).alias("steps"),
        )
        .withColumn("seconds", (f.unix_millis("ended") - f.unix_millis("began")) / 1000)
    )


def session_sizes(visits: DataFrame) -> DataFrame:
    """Counts sessions by their number of events, and measures how long they last."""
    return (
        visits.groupBy("events")
        .agg(f.count("*").alias("sessions"), f.round(f.avg("seconds"), 1).alias("mean_seconds"))
        .orderBy("events")
    )


def top_pages(events: DataFrame, count: int) -> DataFrame:
    """Returns the most viewed pages."""
    views = events.where(f.col("type") == "page_view").groupBy("page")
    counted = views.agg(f.count("*").alias("views"), f.count_distinct("user").alias("users"))
    return counted.orderBy(f.desc("views"), "page").limit(count)


def funnel(visits: DataFrame, steps: Sequence[str]) -> DataFrame:
    """Counts the sessions that reached each of `steps`, in that order; other events may be between them."""
    expected = f.array(*[f.lit(step) for step in steps])

    def further(reached: Column, step: Column) -> Column:
        return f.when(step["type"] == f.get(expected, reached), reached + 1).otherwise(reached)

    reached = visits.select(f.aggregate("steps", f.lit(0), further).alias("reached"))
    rows = [
        reached.agg(f.sum((f.col("reached") > number).cast("bigint")).alias("sessions")).select(
            f.lit(number + 1).alias("step"), f.lit(step).alias("type"), "sessions"
        )
        for number, step in enumerate(steps)
    ]
    return reduce(DataFrame.unionByName, rows).orderBy("step")


def delays(events: DataFrame) -> DataFrame:
    """Counts events by the time from the event to the topic: events per bucket; `to_seconds` is its upper bound (null:
    above all bounds).
    """
    seconds = _delay()
    bound = f.lit(None).cast("double")
    for upper in reversed(DELAY_BOUNDS_S):
        bound = f.when(seconds <= upper, f.lit(upper)).otherwise(bound)
    counted = events.groupBy(bound.alias("to_seconds")).agg(f.count("*").alias("events"))
    order = Window.orderBy(f.asc_nulls_last("to_seconds"))
    return counted.withColumn("share", f.sum("events").over(order) / f.sum("events").over(Window.partitionBy()))


def delay_quantiles(events: DataFrame) -> DataFrame:
    """Returns the quantiles of the time from the event to the topic, in seconds."""
    quantiles = events.agg(
        f.percentile(_delay(), f.array(*[f.lit(quantile) for quantile in QUANTILES])).alias("quantiles")
    )
    pairs = f.arrays_zip(
        f.array(*[f.lit(quantile) for quantile in QUANTILES]).alias("quantile"), f.col("quantiles").alias("seconds")
    )
    return quantiles.select(f.inline(pairs).alias("quantile", "seconds"))


def _delay() -> Column:
    return (f.unix_millis("received") - f.unix_millis("happened")) / 1000


def _window(length: str) -> Column:
    return f.window("happened", length)["start"].alias("window_start")
