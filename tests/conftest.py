"""Options of the whole suite. `--peer=apache` runs the interop tests against Apache Kafka, which tests the tests;
`--installed` tests Odradek as its users have it, with its compiled core (`tests/installed.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("steady", deadline=None)  # how long an example takes says how busy the machine is
settings.load_profile("steady")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--peer", choices=("odradek", "apache"), default="odradek", help="the broker to test the clients with"
    )
    parser.addoption(
        "--record-frames", type=Path, metavar="DIR", help="record what clients send, for the corpus of tests/fuzz"
    )
    parser.addoption("--cluster-kills", type=int, default=100, help="how often brokers of mixed clusters are killed")
    parser.addoption("--cluster-seed", type=int, default=1, help="which of them, and when")
    parser.addoption("--controller-kills", type=int, default=3, help="how often controllers are killed")
    parser.addoption("--controller-elections", type=int, default=3, help="elections of mixed controllers")
    parser.addoption("--controller-failovers", type=int, default=3, help="how often a failover is measured")
    parser.addoption("--dashboards", type=Path, metavar="DIR", help="dashboards whose expressions metrics are to have")
    parser.addoption("--pipeline-records", type=int, default=0, help="records of ten killed loads; 0 is a short test")
    parser.addoption("--kill-cycles", type=int, default=30, help="how often a broker under load is killed")
    parser.addoption("--smoke-s", type=int, default=20, help="how long instances of StreamsSmokeTest are killed")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out tests of the oldest clients with Apache Kafka 4, which no longer supports them."""
    if config.getoption("--peer", "odradek") == "odradek":
        return
    refused = [item for item in items if item.get_closest_marker("odradek_only")]
    config.hook.pytest_deselected(items=refused)
    items[:] = [item for item in items if item not in refused]
