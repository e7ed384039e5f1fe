"""The conditions of a fault: which requests it is about."""

from __future__ import annotations

import asyncio
from typing import NamedTuple, Protocol

from programs.control.request_view import RequestView, SubjectPartition


class Conditions(NamedTuple):
    """All of these hold for a request that a fault acts on; None and nothing hold for every one."""

    apis: frozenset[int] = frozenset()
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None
    client_id: str | None = None
    listener: str | None = None

    def hold(self, view: RequestView) -> bool:
        """True where all of them hold for the request."""
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
        """True where the topic and the partition are those of the conditions; a topic as a whole has each partition."""
        return self.topic in (None, place.topic) and (
            self.partition is None or place.partition is None or self.partition == place.partition
        )


class Cause(Protocol):
    """The fault by which an action acts."""

    id: str
    conditions: Conditions
    gone: asyncio.Event
    """Set once the fault is taken away."""
