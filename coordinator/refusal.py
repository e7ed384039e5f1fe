"""Errors that decisions say themselves, and that no layer between them and the client translates."""

from __future__ import annotations

from protocol.errors import KafkaError


class Refusal(KafkaError):
    """Of something that the client named, as a topic that is not there; not of the coordinator's own log."""
