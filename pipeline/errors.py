"""The errors that end a job."""

from __future__ import annotations


class PipelineError(Exception):
    """A job ended without committing anything.

    The message names topic, partition and offsets, and the remedy.
    """


class LostRange(PipelineError):
    """Requested offsets are no longer in the topic: retention or DeleteRecords removed them."""


class TopicChanged(PipelineError):
    """The topic differs from the loaded topic: it has more partitions, or was deleted and recreated."""


class Unreachable(PipelineError):
    """No broker answers."""


class CorruptBatch(PipelineError):
    """A batch of the topic is corrupt; a consumer can't read past it."""
