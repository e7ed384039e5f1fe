"""Errors of machines and their storage with a meaning beyond their code."""

from __future__ import annotations

from protocol.errors import KafkaError


class Rejection(KafkaError):
    """An error about the client's request, such as an unknown topic; not about the coordinator's own log."""


class HalfWritten(KafkaError):
    """An unexpected failure of a storage: it may have some of the records."""


class Undecided(Exception):
    """A decision must be made again, with more knowledge or in another place; it is neither a rejection nor a bug."""
