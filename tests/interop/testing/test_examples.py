"""Runs the examples as a user who copies one would."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.interop import jvm
from tests.interop.brokers import Odradek
from tests.interop.node import installed
from tests.interop.processes import ROOT, run

pytestmark = [pytest.mark.odradek_only, pytest.mark.examples]

EXAMPLES = ROOT / "examples"
TIMEOUT_S = 300


@pytest.fixture(autouse=True)
def _as_a_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Uses the tree as the installed package, with its command."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("ODRADEK", Odradek.program)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)


def run_suite(name: str, *plugins: str) -> None:
    """Runs the tests of a folder, with only its own options."""
    chosen = [word for plugin in ("odradek.pytest_plugin", "no:cacheprovider", *plugins) for word in ("-p", plugin)]
    folder = EXAMPLES / name
    options = ["--rootdir", str(folder), "-c", str(folder / "pytest.ini")]
    run([sys.executable, "-m", "pytest", *chosen, *options, str(folder)], timeout_s=TIMEOUT_S)


@pytest.mark.ci
@pytest.mark.parametrize("name", ["confluent-kafka", "kafka-python"])
def test_threads(name: str, tmp_path: Path) -> None:
    run_suite(name)
    assert not list(tmp_path.glob("odradek-*"))


@pytest.mark.parametrize("name", ["aiokafka", "faststream"])
def test_coroutines(name: str, tmp_path: Path) -> None:
    run_suite(name, "pytest_asyncio.plugin")
    assert not list(tmp_path.glob("odradek-*"))


def test_java(tmp_path: Path) -> None:
    jars = f"{jvm.apache_kafka()}/*"
    run(["java", "-cp", jars, str(EXAMPLES / "java" / "Orders.java")], timeout_s=TIMEOUT_S)
    assert not list(tmp_path.glob("orders*"))


def test_javascript(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NODE_PATH", str(installed() / "node_modules"))
    run(["node", "--test", str(EXAMPLES / "javascript")], timeout_s=TIMEOUT_S)
    assert not list(tmp_path.glob("orders*"))


def test_go(tmp_path: Path) -> None:
    run(["go", "-C", str(EXAMPLES / "go"), "test", "-count=1", "./..."], timeout_s=TIMEOUT_S)
    assert not list(tmp_path.glob("orders*"))


def test_each_example_is_listed() -> None:
    page = (EXAMPLES / "README.md").read_text()
    folders = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
    assert [name for name in folders if f"]({name}/" not in page] == []
