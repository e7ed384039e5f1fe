"""Tests which part of a job a setting belongs to."""

from __future__ import annotations

import pytest

from pipeline.errors import PipelineError
from pipeline.settings import CLIENT, CONNECTOR, SOURCE, SPARK, TARGET, parse_settings


def test_the_name_says_whose_setting_it_is() -> None:
    words = ["spark.executor.memory=1g", "kafka.security.protocol=SSL", "minPartitions=8", "sasl.password=a=b"]
    assert parse_settings(words, SPARK, CONNECTOR, CLIENT) == {
        SPARK: {"spark.executor.memory": "1g"},
        CONNECTOR: {"kafka.security.protocol": "SSL", "minPartitions": "8"},
        CLIENT: {"sasl.password": "a=b"},
    }


def test_the_clients_of_a_mirror_have_prefixes() -> None:
    assert parse_settings(["source.client.id=a", "target.client.id=b"], SOURCE, TARGET) == {
        SOURCE: {"client.id": "a"},
        TARGET: {"client.id": "b"},
    }


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("client.id", "--set client.id: expected NAME=VALUE"),
        ("=1", "--set =1: expected NAME=VALUE"),
        ("spark.a=1", r"--set spark.a: a setting of Spark \(spark.…\); this job has settings of the client"),
    ],
)
def test_a_wrong_setting_is_named(word: str, problem: str) -> None:
    with pytest.raises(PipelineError, match=problem):
        parse_settings([word], CLIENT)
