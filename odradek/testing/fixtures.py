"""Fixtures with other scopes and settings than those of the plugin.

    from odradek.testing.fixtures import broker_fixture, topic_fixture

    secured = broker_fixture(scope="module", users={"alice": "secret"}, tls=True)
    orders = topic_fixture("secured", partitions=3)

The variable's name is the fixture's name, in a test module or a conftest.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from secrets import token_hex
from typing import Any, Literal

import pytest

from odradek.testing.broker import Broker
from odradek.testing.cluster import Cluster
from odradek.testing.controlled import ControlledBroker
from odradek.testing.security import Acl
from odradek.testing.served import ServedBroker

__tracebackhide__ = True

Scope = Literal["session", "package", "module", "class", "function"]

NAME_LENGTH = 80
_numbers = itertools.count(1)


def broker_fixture(
    scope: Scope = "function",
    settings: Mapping[str, str | int | bool] | None = None,
    *,
    tls: bool = False,
    users: Mapping[str, str] | None = None,
    acls: Sequence[Acl] | None = None,
) -> object:
    """Returns a fixture that gives a `Broker` with the arguments."""

    @pytest.fixture(scope=scope)
    def broker() -> Iterator[Broker]:
        with Broker(settings, tls=tls, users=users, acls=acls) as started:
            yield started

    return broker


def cluster_fixture(
    brokers: int = 3, scope: Scope = "function", settings: Mapping[str, str | int | bool] | None = None
) -> object:
    """Returns a fixture that gives a `Cluster`."""

    @pytest.fixture(scope=scope)
    def cluster() -> Iterator[Cluster]:
        with Cluster(brokers, settings) as started:
            yield started

    return cluster


def topic_fixture(
    broker: str = "odradek_broker",
    *,
    partitions: int | None = None,
    replicas: int | None = None,
    configs: Mapping[str, str] | None = None,
) -> object:
    """Returns a fixture that gives the name of a test's own topic, on the broker of the fixture `broker`."""

    @pytest.fixture
    def topic(request: pytest.FixtureRequest) -> Iterator[str]:
        yield from topic_of(request, request.getfixturevalue(broker), partitions, replicas, configs)

    return topic


def topic_of(
    request: pytest.FixtureRequest,
    broker: ControlledBroker,
    partitions: int | None = None,
    replicas: int | None = None,
    configs: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Yields the name of a new topic, which is deleted afterwards. `.mark.odradek_topic(partitions=3)` on the test
    overrides the arguments."""
    marker = request.node.get_closest_marker("odradek_topic")
    wishes: dict[str, Any] = {"partitions": partitions, "replicas": replicas, "configs": configs}
    wishes |= marker.kwargs if marker is not None else {}
    name = broker.create_topic(new_name(request.node.name), **wishes)
    yield name
    if isinstance(broker, ServedBroker):
        if not broker.process.is_running or broker.process.is_paused:
            return  # the test has killed or stopped the broker: the topic is not needed
        broker.clear_faults()
    broker.delete_topic(name)


def new_name(text: str) -> str:
    """Returns a unique name for a topic, which begins with the test's name."""
    words = re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:NAME_LENGTH].strip("-.")
    return f"{words}-{next(_numbers)}-{token_hex(3)}"
