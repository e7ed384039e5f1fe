"""Errors of machines and of their storage that the engine handles in their own way."""

from __future__ import annotations

from protocol.errors import KafkaError


class Rejection(KafkaError):
    """An error about the client's request, such as an unknown topic; not about the coordinator's own log."""


class HalfWritten(KafkaError):
    """An unexpected failure of a storage, which may have written some of the records."""


class Undecided(Exception):
    """An error of a decision that must be made again, with more knowledge or in another place. It is neither a
    rejection nor a bug."""
