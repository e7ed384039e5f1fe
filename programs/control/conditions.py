"""The conditions that select the requests of a fault."""

from __future__ import annotations

import asyncio
from typing import NamedTuple, Protocol

from programs.control.request_view import RequestView, SubjectPartition


class Conditions(NamedTuple):
    """The conditions that a request must all meet; None or an empty set accepts every request."""

    apis: frozenset[int] = frozenset()
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None
    client_id: str | None = None
    listener: str | None = None

    def hold(self, view: RequestView) -> bool:
        """True if the request meets all conditions."""
        header, subjects = view.header, view.subjects
        return (
            (not self.apis or header.key in self.apis)
            and self.client_id in (None, header.client_id)
            and self.listener in (None, view.connection.listener_name)
            and (self.group is None or self.group in subjects.groups)
            and (self.transactional_id is None or self.transactional_id in subjects.transactional_ids)
            and (self.topic is None or subjects.has_every_topic or any(map(self.mean, subjects.places)))
        )

    def mean(self, place: SubjectPartition) -> bool:
        """True if the conditions select the partition. A topic without a partition stands for all of its partitions."""
        return self.topic in (None, place.topic) and (
            self.partition is None or place.partition is None or self.partition == place.partition
        )


class Cause(Protocol):
    """The fault that an action belongs to."""

    id: str
    conditions: Conditions
    gone: asyncio.Event
    """An event that is set once the fault is removed."""
