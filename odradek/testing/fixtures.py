"""Fixtures of other scopes and settings than the plugin's.

    from odradek.testing.fixtures import broker_fixture, topic_fixture

    secured = broker_fixture(scope="module", users={"alice": "secret"}, tls=True)
    orders = topic_fixture("secured", partitions=3)

Each is a fixture by the name that it is given, in a test module or a conftest.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import pytest

from odradek.testing.broker import Broker
from odradek.testing.cluster import Cluster
from odradek.testing.controlled import ControlledBroker
from odradek.testing.security import Acl
from odradek.testing.served import ServedBroker

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
    """Returns a fixture: a `Broker` with these arguments."""

    @pytest.fixture(scope=scope)
    def broker() -> Iterator[Broker]:
        with Broker(settings, tls=tls, users=users, acls=acls) as started:
            yield started

    return broker


def cluster_fixture(
    brokers: int = 3, scope: Scope = "function", settings: Mapping[str, str | int | bool] | None = None
) -> object:
    """Returns a fixture: a `Cluster` of so many brokers."""

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
    """Returns a fixture: the name of a topic of the test's own, at the broker that the fixture `broker` gives."""

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
    """Yields the name of a new topic, which is deleted afterwards. `.mark.odradek_topic(partitions=3)` on the
    test wins over the arguments."""
    marker = request.node.get_closest_marker("odradek_topic")
    wishes: dict[str, Any] = {"partitions": partitions, "replicas": replicas, "configs": configs}
    wishes |= marker.kwargs if marker is not None else {}
    name = broker.create_topic(new_name(request.node.name), **wishes)
    yield name
    if isinstance(broker, ServedBroker):
        if not broker.process.is_running or broker.process.is_paused:
            return  # whose test has killed it, or halted it, has no use for it any more
        broker.clear_faults()
    broker.delete_topic(name)


def new_name(text: str) -> str:
    """Returns a name for a topic that nobody else has, which tells whose it is."""
    from secrets import token_hex  # other suites may be at the same broker

    words = re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:NAME_LENGTH].strip("-.")
    return f"{words}-{next(_numbers)}-{token_hex(3)}"
