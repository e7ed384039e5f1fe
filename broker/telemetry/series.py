"""Series of the metrics that clients have pushed, for scrapes.

Each has the client's own labels, and `client_instance_id` and `client_id`. A client that misses a push loses its
series.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from broker.telemetry.point import OWN_LABELS, TOTAL, Point, PointKind
from coordinator.telemetry.subscriptions import ClientAttributes

MAX_SERIES: Final = 100_000
"""Maximum number of series of all clients, about 30 MB. Each client counts as one more."""

CHARACTERS_EACH: Final = 300
"""A series with more characters in its name and labels counts as several."""

MISSED_AFTER: Final = 2
"""Number of intervals without a push after which a client has missed one. Clients vary the time between pushes from
half an interval to one and a half.
"""


class SeriesKey(NamedTuple):
    """Identifies a series of one client."""

    name: str
    labels: tuple[tuple[str, str], ...]


class ClientSample(NamedTuple):
    """A series with its value, for a scrape."""

    name: str
    labels: dict[str, str]
    is_counter: bool
    value: float


class ClientValues:
    """The series of one client."""

    def __init__(self, attributes: ClientAttributes) -> None:
        self.attributes = attributes
        self.expires_ms = 0
        self.values: dict[SeriesKey, float] = {}
        self.places = 1
        """The part of MAX_SERIES that this client uses."""


class ClientSeries:
    """The series of all clients."""

    def __init__(self, max_series: int = MAX_SERIES) -> None:
        self._max_series = max_series
        self._clients: dict[str, ClientValues] = {}
        self._is_counter: dict[str, bool] = {}
        """True for families of counters. The first point of a family decides, because all its series have one type."""
        self.places = 0
        """The part of MAX_SERIES that all clients use."""
        self.left_out = 0
        """Number of points that were dropped: MAX_SERIES was reached, or the name already has another type."""

    def add(self, attributes: ClientAttributes, points: Iterable[Point], interval_ms: int, now_ms: int) -> None:
        """Adds the points of a push."""
        client = self._clients.get(attributes.client_instance_id)
        if client is None:
            if self.places >= self._max_series:
                self.left_out += sum(1 for _ in points)
                return
            client = self._clients[attributes.client_instance_id] = ClientValues(attributes)
            self.places += 1
        client.attributes = attributes
        client.expires_ms = now_ms + MISSED_AFTER * interval_ms
        for point in points:
            self._note(client, point)

    def expire(self, now_ms: int) -> None:
        """Removes the series of clients that have missed a push."""
        gone = [name for name, client in self._clients.items() if client.expires_ms < now_ms]
        for name in gone:
            self.places -= self._clients.pop(name).places
        if gone:
            names = {family_of(key.name) for client in self._clients.values() for key in client.values}
            self._is_counter = {name: kind for name, kind in self._is_counter.items() if name in names}

    def clients(self) -> list[ClientAttributes]:
        """Returns the clients that have pushed recently."""
        return [client.attributes for client in self._clients.values()]

    def all(self) -> Iterator[ClientSample]:
        """Yields all series."""
        for client in list(self._clients.values()):
            present = client.attributes.present()
            own: dict[str, str] = {name: present[name] for name in OWN_LABELS if name in present}
            for key, value in list(client.values.items()):
                yield ClientSample(key.name, {**dict(key.labels), **own}, self._is_counter[family_of(key.name)], value)

    def _note(self, client: ClientValues, point: Point) -> None:
        is_counter = point.kind is not PointKind.GAUGE
        key = SeriesKey(point.name, point.labels)
        before = client.values.get(key)
        places = places_of(key) if before is None else 0
        has_place = self.places + places <= self._max_series
        if not has_place or self._is_counter.setdefault(family_of(point.name), is_counter) != is_counter:
            self.left_out += 1
            return
        client.places += places
        self.places += places
        client.values[key] = point.value + (before or 0) if point.kind is PointKind.DELTA else point.value


def places_of(key: SeriesKey) -> int:
    """Returns the part of MAX_SERIES that a series uses."""
    characters = len(key.name) + sum(len(name) + len(text) for name, text in key.labels)
    return 1 + characters // CHARACTERS_EACH


def family_of(name: str) -> str:
    """Returns the name of a family in OpenMetrics: a counter's without its suffix."""
    return name.removesuffix(TOTAL)
