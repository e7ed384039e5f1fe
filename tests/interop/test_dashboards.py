"""Tests which part of a dashboard's expression needs a broker's metrics."""

from __future__ import annotations

import pytest

from tests.interop.dashboards import Expression, alternatives, metrics, replaced


def of_the_broker(expression: str) -> str:
    return Expression("dashboard", "panel", expression).of_the_broker


@pytest.mark.parametrize(
    ("expression", "of_its_own"),
    [
        ("sum(kafka_brokers)", "sum(kafka_brokers)"),
        ("kafka_a_value or kafka_a", "kafka_a"),
        ("kafka_a or kafka_b", "kafka_a or kafka_b"),
        ("sum(kafka_a{x=~'1 or 2'})\nor\nvector(0)", "sum(kafka_a{x=~'1 or 2'})"),
        ("sum(jvm_memory_used or kafka_a)", ""),
        ("kafka_a / on (pod) container_memory", ""),
        ("kafka_a{java_version='17'}", "kafka_a{java_version='17'}"),
        ("sum by (node_name) (kafka_a)", "sum by (node_name) (kafka_a)"),
        ('kafka_a{topic="kafka_for or (all_of)"}', 'kafka_a{topic="kafka_for or (all_of)"}'),
        ("count(up == 1)", "count(up == 1)"),
        ("clamp_max(leader_uptime, 1) or clamp_max(zookeeper_uptime, 1)", ""),
    ],
)
def test_what_is_asked_of_a_broker(expression: str, of_its_own: str) -> None:
    assert of_the_broker(expression) == of_its_own


def test_alternatives_are_those_outside_of_brackets() -> None:
    assert alternatives('max(a or b) or c{d="(or"} or\n(e)') == ["max(a or b)", 'c{d="(or"}', "(e)"]


def test_functions_labels_and_texts_are_no_metrics() -> None:
    expression = 'label_replace(max_over_time(kafka_a{pod_name="x_y"}[5m]), "new_one", "$1", "old_one", "(.*)")'
    assert metrics(f"sum by (pod_name) ({expression})") == ["kafka_a"]


def test_a_variable_matches_all() -> None:
    expression = 'rate(a_b{job="integrations/kafka",topic="$topic",x=~"${x:regex}"}[$__rate_interval])'
    assert replaced(expression) == 'rate(a_b{job=~".*",topic=~".*",x=~".*"}[15s])'
