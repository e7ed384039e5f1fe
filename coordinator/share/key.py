"""The name of a share partition."""

from __future__ import annotations

from typing import NamedTuple

from protocol.types import Uuid, uuid_to_text


class ShareKey(NamedTuple):
    """A share partition: a group's view of a partition."""

    group_id: str
    topic_id: Uuid
    partition: int

    @property
    def coordinator_key(self) -> str:
        """The key in FindCoordinator requests, whose hash selects the state topic's partition."""
        return f"{self.group_id}:{uuid_to_text(self.topic_id)}:{self.partition}"
