"""Records the broker's requests while recording is enabled, up to a limit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from broker.clock import NS_PER_MS, Clock
from programs.control.json_values import json_of
from programs.control.request_view import RequestView
from protocol.types import Buffer

if TYPE_CHECKING:
    from programs.control.fault import InjectedFault

DEFAULT_LIMIT: Final = 1_000
MAX_LIMIT: Final = 100_000
"""Maximum number of recorded requests, which take a few hundred megabytes if they are small."""


class RequestEntry:
    """One request and its result."""

    def __init__(self, number: int, view: RequestView, fault: InjectedFault | None, clock: Clock) -> None:
        self.number = number
        self._clock = clock
        self._time_ms = clock.now_ms()
        self._begun_ns = clock.monotonic_ns()
        self._took_ns: int | None = None
        self._fault = fault
        self._answer = "waiting"
        self._answer_bytes = 0
        self._request = described(view)  # without the frame, which may have a megabyte of records
        self._body = json_of(view.request)
        self._subjects = view.subjects

    def answered(self, buffers: Sequence[Buffer] | None) -> None:
        """Sets the answer; None if the request has none."""
        self._answer = "none" if buffers is None else "sent"
        self._answer_bytes = sum(map(len, buffers or ()))
        self._took_ns = self._clock.monotonic_ns() - self._begun_ns

    def closed(self) -> None:
        """Sets that its connection was closed instead of an answer."""
        self._answer = "closed"
        self._took_ns = self._clock.monotonic_ns() - self._begun_ns

    def concerns(self, api: str | None, client_id: str | None, topic: str | None, group: str | None) -> bool:
        """True if the request has this API, client, topic and group; None stands for any."""
        request, subjects = self._request, self._subjects
        return (
            api in (None, request["api"])
            and client_id in (None, request["client_id"])
            and (topic is None or any(place.topic == topic for place in subjects.places))
            and (group is None or group in subjects.groups)
        )

    def content(self, *, with_body: bool) -> dict[str, object]:
        """Returns the request for JSON."""
        body = {"body": self._body} if with_body else {}
        return {
            "number": self.number,
            "time_ms": self._time_ms,
            **self._request,
            "fault": None if self._fault is None else self._fault.id,
            "answer": self._answer,
            "answer_bytes": self._answer_bytes,
            "took_ms": None if self._took_ns is None else self._took_ns / NS_PER_MS,
            **body,
        }


def described(view: RequestView) -> dict[str, object]:
    """Returns the client and the subjects of a request for JSON."""
    header, subjects, connection = view.header, view.subjects, view.connection
    return {
        "api": view.name,
        "version": header.version,
        "client_id": header.client_id,
        "principal": str(connection.principal),
        "listener": connection.listener_name,
        "peer": connection.peer,
        "correlation_id": header.correlation_id,
        "size_bytes": len(view.frame),
        "partitions": [place._asdict() for place in subjects.places],
        "groups": subjects.groups,
        "transactional_ids": subjects.transactional_ids,
    }


class Recorder:
    """Keeps the latest requests, up to a limit."""

    def __init__(self, clock: Clock) -> None:
        self.is_recording = False
        self._clock = clock
        self._entries: deque[RequestEntry] = deque(maxlen=DEFAULT_LIMIT)
        self._count = 0

    def record(self, is_recording: bool, limit: int | None) -> None:
        """Starts or stops recording. `limit` is the maximum number of requests to keep."""
        self.is_recording = is_recording
        if limit is not None and limit != self._entries.maxlen:
            self._entries = deque(self._entries, maxlen=limit)

    def forget(self) -> None:
        """Deletes the recorded requests; the numbering continues."""
        self._entries.clear()

    def begin(self, view: RequestView, fault: InjectedFault | None) -> RequestEntry | None:
        """Records a request that has arrived. Returns None if recording is off."""
        if not self.is_recording:
            return None
        self._count += 1
        entry = RequestEntry(self._count, view, fault, self._clock)
        self._entries.append(entry)
        return entry

    def entries(self, after: int) -> Iterator[RequestEntry]:
        """Yields the requests after a number, the oldest first."""
        return (entry for entry in self._entries if entry.number > after)

    @property
    def content(self) -> dict[str, object]:
        """The recording's state for JSON."""
        return {
            "enabled": self.is_recording,
            "limit": self._entries.maxlen,
            "recorded": len(self._entries),
            "forgotten": self._count - len(self._entries),
        }
