"""The errors of a job that cannot go on."""

from __future__ import annotations


class PipelineError(Exception):
    """A job ends, and nothing of it was committed.

    The message names topic, partition and offsets, and the remedy.
    """


class LostRange(PipelineError):
    """Offsets that were asked for are no longer in the topic: retention or a deletion of records passed them."""


class TopicChanged(PipelineError):
    """A topic is not the one that was loaded: it gained partitions, or was deleted and created again."""


class Unreachable(PipelineError):
    """No broker answers."""


class CorruptBatch(PipelineError):
    """A batch of the topic fails its checks; the consumer refuses to go past it."""
