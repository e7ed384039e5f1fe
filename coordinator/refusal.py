"""Errors of coordinators that are more than their code."""

from __future__ import annotations

from protocol.errors import KafkaError


class Refusal(KafkaError):
    """Of something that the client named, as a topic that is not there; not of the coordinator's own log."""


class HalfWritten(KafkaError):
    """A storage failed in a way that it should not: nobody can tell what of the records it has."""
