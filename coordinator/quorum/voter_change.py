"""A change of the voter set, from its request to its commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from coordinator.quorum.ready import Response
from coordinator.quorum.voter_set import VoterNode
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from coordinator.quorum.core import Core


class VoterChange:
    """A change of the voter set that is under way, with the request that waits for it."""

    def __init__(
        self,
        ticket: int,
        deadline_ms: int,
        respond: Callable[[ErrorCode, str | None], Response],
        added: VoterNode | None = None,
        *,
        ack_when_committed: bool = True,
    ) -> None:
        self.ticket = ticket
        self.deadline_ms = deadline_ms
        self.added = added
        """The voter that is added, while its ApiVersions are awaited."""
        self.next_offset: int | None = None
        """The offset after the voter set, once that is written."""
        self.ack_when_committed = ack_when_committed
        self._respond = respond
        self._is_answered = False

    def is_committed(self, high_watermark: int) -> bool:
        """True if the voter set was written and is committed."""
        return self.next_offset is not None and self.next_offset <= high_watermark

    def answer(self, core: Core, code: ErrorCode, message: str | None) -> None:
        """Answers the request, once."""
        if not self._is_answered:
            self._is_answered = True
            core.reply(self.ticket, self._respond(code, message))
