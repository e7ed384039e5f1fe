"""Tests the benchmark of the control server: the brokers that are compared, and the verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.control import CONTROL, compared_with
from bench.metrics import Cost
from bench.peers.brokers import ControlledOdradek, EarlierOdradek, Odradek


def test_the_brokers_differ_in_the_profile_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.wheel.program", lambda: "odradek")
    plain, controlled = Odradek(tmp_path), ControlledOdradek(tmp_path)
    for broker in (plain, controlled):
        broker.bootstrap, broker.data = "127.0.0.1:1", tmp_path
    assert controlled.command()[: len(plain.command())] == plain.command()


def test_an_earlier_commit_takes_the_place_of_the_broker_without() -> None:
    compared = compared_with("v1")
    assert (compared.without, compared.having, EarlierOdradek.revision) == (EarlierOdradek, Odradek, "v1")
    assert compared_with(None) is CONTROL


def test_a_verdict_names_what_costs() -> None:
    cost = Cost("produce", "cpu_s_per_gb", 1.03, 1.02, 1.04, CONTROL.what)
    assert str(cost) == "produce: cpu_s_per_gb ×1.030 with the control server (1.020 to 1.040): above 1 %"
