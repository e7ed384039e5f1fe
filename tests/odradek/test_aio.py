"""Tests brokers with coroutines: each method has the parameters of its blocking counterpart, and doesn't block the
event loop."""

from __future__ import annotations

import inspect
import threading

import pytest

from odradek.testing import AsyncBroker, AsyncCluster, Broker, Cluster, ControlledBroker, ServedBroker
from odradek.testing.views import Record

WITHOUT = {"control", "control_url", "clock"}
"""Attributes that are not methods; `advance` advances the time."""


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


class Overriding(ServedBroker):
    """A broker that returns records without a process."""

    def records(self, topic: str, **options: object) -> list[Record]:
        assert threading.current_thread() is not threading.main_thread()
        return [Record(topic, 0, len(options), 0, None, None)]


async def test_a_coroutine_calls_what_the_broker_makes_of_the_method_in_a_thread() -> None:
    (record,) = await AsyncBroker(Overriding()).records("orders", partition=1, offset=5)
    assert (record.topic, record.offset) == ("orders", 2)


@pytest.mark.parametrize("view", [AsyncBroker, AsyncCluster])
def test_all_that_a_broker_does_has_a_coroutine(view: type) -> None:
    assert public(ControlledBroker) - public(view) == WITHOUT


def test_parameters_and_words_are_those_of_the_method() -> None:
    ours, theirs = AsyncBroker.wait_for_group, Broker.wait_for_group
    assert inspect.iscoroutinefunction(ours)
    assert inspect.signature(ours) == inspect.signature(theirs)
    assert ours.__doc__ == theirs.__doc__


def test_brokers_and_clusters_live_alike() -> None:
    for name in ("__enter__", "__exit__", "__aenter__", "__aexit__"):
        assert getattr(Broker, name) is getattr(Cluster, name)
    assert isinstance(Broker().aio, AsyncBroker)
    assert isinstance(Cluster(2).aio, AsyncCluster)
