"""A real Prometheus (Debian's package `prometheus`) that scrapes brokers, with its HTTP interface."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from tests.interop.processes import ROOT, Server, free_port, run
from tests.waiting import wait_until

MONITORING = ROOT / "docker" / "monitoring"
READY_WITHIN_S = 60
SOON_S = 120
INTERVAL_S = 2
"""Interval of scrapes, which may take that long on a busy machine."""


class Target(NamedTuple):
    """A process that is scraped, and the labels that Strimzi's dashboards match."""

    address: str
    pod: str

    @property
    def config(self) -> str:
        labels = {
            "namespace": "default",
            "strimzi_io_cluster": "my-cluster",
            "strimzi_io_name": "my-cluster-kafka",
            "strimzi_io_kind": "Kafka",
            "kubernetes_pod_name": self.pod,
            "pod": self.pod,
            "container": "kafka",
        }
        lines = "".join(f"          {name}: {value}\n" for name, value in labels.items())
        return f'      - targets: ["{self.address}"]\n        labels:\n{lines}'


class Series(NamedTuple):
    """A series of an answer, with its newest value."""

    labels: Mapping[str, str]
    value: float


class Prometheus(Server):
    """Scrapes targets every other second, and evaluates rules at the same interval."""

    def __init__(self, folder: Path, targets: list[Target], rules: str = "") -> None:
        super().__init__("prometheus", folder / "prometheus.log")
        self.folder = folder
        self._targets = targets
        self._rules = rules
        self._port = 0

    def start(self) -> None:
        program = shutil.which("prometheus")
        assert program, "there is no prometheus: apt-get install prometheus"
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "rules.yaml").write_text(self._rules or "groups: []\n")
        (self.folder / "prometheus.yaml").write_text(
            f"global: {{scrape_interval: {INTERVAL_S}s, scrape_timeout: {INTERVAL_S}s, "
            f"evaluation_interval: {INTERVAL_S}s}}\nrule_files: [rules.yaml]\n"
            f"scrape_configs:\n  - job_name: kafka\n    static_configs:\n"
            + "".join(target.config for target in self._targets)
        )
        self._port = free_port()
        command = [
            program,
            f"--config.file={self.folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self._port}",
        ]
        self.launch(command, r"Server is ready to receive web requests", READY_WITHIN_S)

    def ask(self, path: str, **parameters: str) -> Any:
        """Returns the data of an answer; an invalid query fails with Prometheus' message."""
        url = f"http://127.0.0.1:{self._port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as page:
                return json.load(page)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None

    def query(self, expression: str) -> list[Series]:
        """Returns the series of an expression, as of now."""
        data = self.ask("query", query=expression)
        if data["resultType"] == "scalar":
            return [Series({}, float(data["result"][1]))]
        return [Series(one["metric"], float(one["value"][1])) for one in data["result"]]

    def firing(self) -> set[str]:
        """Returns the names of the alerts that fire."""
        return {alert["labels"]["alertname"] for alert in self.ask("alerts")["alerts"] if alert["state"] == "firing"}

    def wait_for(self, is_so: Callable[[], object], what: str, within_s: float = SOON_S) -> None:
        """Waits for a condition that only a scrape can change."""
        wait_until(is_so, lambda: f"{what}; firing: {sorted(self.firing())}", within_s=within_s, pause_s=0.25)

    def scraped(self, count: int) -> None:
        """Waits until each target has been scraped this many times since the start."""
        expression = f"count(count_over_time(up[10m]) >= {count})"
        self.wait_for(lambda: [one.value for one in self.query(expression)] == [len(self._targets)], f"{count} scrapes")


def page(address: str, path: str = "/metrics") -> str:
    """Returns the metrics page of a process."""
    with urllib.request.urlopen(f"http://{address}{path}", timeout=30) as answer:
        return str(answer.read(), "utf-8")


def values(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Returns the values of a page, by name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def promtool(*words: str) -> None:
    """Runs promtool; fails with its message."""
    assert shutil.which("promtool"), "there is no promtool: apt-get install prometheus"
    run(["promtool", *words])
