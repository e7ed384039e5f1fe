"""Prepares the expressions of Grafana's dashboards for Prometheus, with their variables replaced."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

VARIABLE = re.compile(r"\$\{(\w+)(?::\w+)?\}|\$(\w+)|\[\[(\w+)\]\]")
VALUES: Mapping[str, str] = {
    "__rate_interval": "15s",
    "__interval": "15s",
    "__range": "1m",
    "interval": "15s",
    "kubernetes_namespace": "default",
    "namespace": "default",
    "strimzi_cluster_name": "my-cluster",
    "cluster": "my-cluster",
    "percentile": "0.99",
    "quantile": "0.99",
    "topk": "5",
}
"""The values of variables. Other variables match everything, as in a dashboard in which all is selected."""

ALL = ".*"

SITES_JOB = 'job="integrations/kafka"'
"""Grafana's own name of the job that scrapes brokers."""

ELSEWHERE = re.compile(r"(?:jvm|java|container|kubelet|kube|node)_\w+")
"""The names of metrics of a JVM, of a container, and of its platform."""

OTHER_DIALECTS = re.compile(
    r"\w*(?:persec(?:_count)?|timems_count|_value|uncommitted_offsets|lag_millis)|\w*zookeeper\w*"
    r"|leader_uptime|num_alive_connections"
)
"""Other exporters' names of the same metrics, and names of ZooKeeper's metrics, which don't exist here."""

PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[(){}\[\]]|\bor\b|[^\w"(){}\[\]]+|\w+')
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
METRIC = re.compile(r"\b(?:up|[a-z]+_\w+)\b(?!\s*\()")


class Expression(NamedTuple):
    """An expression, and its panel."""

    dashboard: str
    panel: str
    expression: str

    @property
    def of_the_broker(self) -> str:
        """Returns the alternatives of the expression that need a broker's metrics; empty if there are none. An
        alternative without any metric says nothing."""
        return " or ".join(one for one in alternatives(self.expression) if asks_a_broker(one))

    def __str__(self) -> str:
        return f"{self.dashboard}: {self.panel}: {self.expression}"


def asks_a_broker(alternative: str) -> bool:
    """True if an alternative uses metrics, and all of them are a broker's."""
    names = metrics(alternative)
    return bool(names) and not any(ELSEWHERE.fullmatch(name) or OTHER_DIALECTS.fullmatch(name) for name in names)


def alternatives(expression: str) -> list[str]:
    """Returns the parts of an expression between its top-level `or`s."""
    depth, parts = 0, [""]
    for piece in PIECE.findall(expression):
        depth += (piece in "({[") - (piece in ")}]")
        if piece == "or" and not depth:
            parts.append("")
        else:
            parts[-1] += piece
    return [part.strip() for part in parts]


def metrics(expression: str) -> list[str]:
    """Returns the names of the metrics in an expression."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", expression)
    return METRIC.findall(GROUPING.sub("", re.sub(r"\{[^}]*\}", "", bare)))


def replaced(expression: str) -> str:
    """Returns an expression with values for its variables."""
    text = VARIABLE.sub(lambda match: VALUES.get(match[1] or match[2] or match[3], ALL), expression)
    return text.replace(f'="{ALL}"', f'=~"{ALL}"').replace(SITES_JOB, f'job=~"{ALL}"')  # one to choose: all will do


def expressions(path: Path) -> Iterator[Expression]:
    """Yields the expressions of a dashboard's panels, including those in folded rows."""
    dashboard = json.loads(path.read_text(encoding="utf-8"))
    panels = [*dashboard.get("panels", ())]
    panels += [panel for row in dashboard.get("rows", ()) for panel in row.get("panels", ())]
    while panels:
        panel = panels.pop(0)
        panels += panel.get("panels", ())
        for target in panel.get("targets", ()):
            if expression := target.get("expr"):
                yield Expression(path.stem, panel.get("title", ""), replaced(expression))
