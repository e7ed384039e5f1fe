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

ELSEWHERE = re.compile(r"\b(?:jvm|java|container|kubelet|kube|node)_[a-z_]+")
"""The names of a JVM's metrics, of a container's, and of what runs it."""

OTHER_DIALECTS = re.compile(r"persec(?:_count)?\b|timems_count\b|_value\b|uncommitted_offsets|lag_millis|zookeeper")
"""Dashboards for any exporter ask for the same by several names, of which one is there; and there is no ZooKeeper."""


class Expression(NamedTuple):
    """An expression, and the panel that it is of."""

    dashboard: str
    panel: str
    expression: str

    @property
    def is_of_the_broker(self) -> bool:
        return not (ELSEWHERE.search(self.expression) or OTHER_DIALECTS.search(self.expression))


def replaced(expression: str) -> str:
    """Returns an expression with values for its variables."""
    text = VARIABLE.sub(lambda match: VALUES.get(match[1] or match[2] or match[3], ALL), expression)
    return text.replace(f'="{ALL}"', f'=~"{ALL}"')  # where one is to be chosen, all will do


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
