"""The expressions of Grafana's dashboards, with their variables replaced, as Prometheus takes them."""

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
"""The values of variables. Those of others are what a dashboard has them match when all is chosen."""

ALL = ".*"

SITES_JOB = 'job="integrations/kafka"'
"""Grafana's own name for the job that scrapes brokers."""

ELSEWHERE = re.compile(r"(?:jvm|java|container|kubelet|kube|node)_\w+")
"""The names of a JVM's metrics, of a container's, and of what runs it."""

OTHER_DIALECTS = re.compile(
    r"\w*(?:persec(?:_count)?|timems_count|_value|uncommitted_offsets|lag_millis)|\w*zookeeper\w*"
    r"|leader_uptime|num_alive_connections"
)
"""Names that other exporters have for the same, and those of ZooKeeper, which is not there."""

PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[(){}\[\]]|\bor\b|[^\w"(){}\[\]]+|\w+')
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
METRIC = re.compile(r"\b(?:up|[a-z]+_\w+)\b(?!\s*\()")


class Expression(NamedTuple):
    """An expression, and the panel that it is of."""

    dashboard: str
    panel: str
    expression: str

    @property
    def of_the_broker(self) -> str:
        """Its alternatives that ask for names which a broker has to serve; the empty text where there are none. What
        it gives without any metric says nothing."""
        return " or ".join(one for one in alternatives(self.expression) if asks_a_broker(one))

    def __str__(self) -> str:
        return f"{self.dashboard}: {self.panel}: {self.expression}"


def asks_a_broker(alternative: str) -> bool:
    """True where an alternative names metrics, all of them a broker's."""
    names = metrics(alternative)
    return bool(names) and not any(ELSEWHERE.fullmatch(name) or OTHER_DIALECTS.fullmatch(name) for name in names)


def alternatives(expression: str) -> list[str]:
    """Returns what stands between the `or`s of an expression that are in no brackets."""
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
    """Yields the expressions of a dashboard's panels, those in rows that are folded too."""
    dashboard = json.loads(path.read_text(encoding="utf-8"))
    panels = [*dashboard.get("panels", ())]
    panels += [panel for row in dashboard.get("rows", ()) for panel in row.get("panels", ())]
    while panels:
        panel = panels.pop(0)
        panels += panel.get("panels", ())
        for target in panel.get("targets", ()):
            if expression := target.get("expr"):
                yield Expression(path.stem, panel.get("title", ""), replaced(expression))
