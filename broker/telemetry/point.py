"""A point of a metric that a client has pushed. Unlike points.py, which decodes pushes, it needs no package that may be
missing: scrapes import it on every broker with a metrics listener.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

OWN_LABELS: Final = ("client_instance_id", "client_id")
"""The labels that identify the client; the client can't set them itself."""

TOTAL: Final = "_total"


class PointKind(Enum):
    """The relation of a point's value to the value of the previous point."""

    GAUGE = "gauge"
    DELTA = "delta"
    """The value is added to the previous sum."""
    CUMULATIVE = "cumulative"
    """The value is the new sum."""


class Point(NamedTuple):
    """A value under the name that Prometheus gets."""

    name: str
    labels: tuple[tuple[str, str], ...]
    kind: PointKind
    value: float
