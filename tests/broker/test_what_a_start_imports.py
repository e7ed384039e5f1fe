"""Tests that a start imports only what it needs, and an idle broker only what most clients need; other modules are
imported at their first use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import asyncio, json, sys

from broker.config.sources import from_assignments, from_flags, load
from programs.run.server import Server

async def main():
    options = load(from_assignments(["odradek.profile=dev"]), from_flags(sys.argv[1], "127.0.0.1:0"))
    server = Server(options.config, asyncio.Event())
    await server.start()
    ready = sorted(sys.modules)
    from programs.run.warming_up import warm_up
    await warm_up(options.config)
    print(json.dumps([ready, sorted(sys.modules)]))
    await server.stop()

asyncio.run(main())
"""
LATER = [
    "broker.handlers.create_topics",
    "broker.handlers.fetch",
    "broker.handlers.produce",
    "coordinator.cluster.topics.create",
    "protocol.messages.create_topics",
    "protocol.messages.fetch",
]
"""The modules that a broker doesn't need before its first client."""
WITH_ITS_FIRST_USE = [
    "broker.handlers.join_group",
    "broker.handlers.describe_acls",
    "broker.share.hosted",
    "coordinator.cluster.configs.alter",
    "coordinator.group.shard",
    "coordinator.group.state",
    "coordinator.share.shard",
    "coordinator.share_partition.acquire",
    "coordinator.transaction.shard",
    "protocol.coordinator_records.offsets",
    "protocol.messages.share_fetch",
    "ctypes",
    "datetime",
]
"""Modules that take memory which an idle broker doesn't need."""
ELSEWHERE = [
    "programs.control",
    "broker.metrics",
    "client.pool",
    "programs.run.joining",
    "client.connection",
    "re2",
]
"""Modules needed only with remote controllers, metrics, or patterns."""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], set[str]]:
    """Returns the modules of a broker that is ready, and of a broker some time later."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path_factory.mktemp("data"))]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    ready, warm = json.loads(ended.stdout)
    return set(ready), set(warm)


@pytest.mark.parametrize("module", LATER)
def test_a_module_that_only_clients_need_is_imported_after_the_start(
    imported: tuple[set[str], set[str]], module: str
) -> None:
    ready, warm = imported
    assert module not in ready
    assert module in warm


@pytest.mark.parametrize("module", WITH_ITS_FIRST_USE)
def test_an_idle_broker_has_no_module_that_few_clients_need(imported: tuple[set[str], set[str]], module: str) -> None:
    assert module not in imported[1]


@pytest.mark.parametrize("module", ELSEWHERE)
def test_a_module_for_another_kind_of_broker_is_not_imported(imported: tuple[set[str], set[str]], module: str) -> None:
    assert module not in imported[1]


def test_no_message_is_imported_but_those_of_a_start(imported: tuple[set[str], set[str]]) -> None:
    messages = {name for name in imported[0] if name.startswith("protocol.messages.")}
    assert messages == {f"protocol.messages.{name}" for name in ("broker_heartbeat", "broker_registration")}
