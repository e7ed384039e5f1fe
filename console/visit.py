"""A request for a page: its parameters, the visitor, and the response."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from contextlib import aclosing
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from commands.client.cluster_client import ClusterClient
from commands.errors import misuse
from console.audit import ChangeLog
from console.reading import RecordOpener
from console.rendering import Templates, event
from console.tailing import Tails
from console.visitors import Visitor
from console.watching import WatchedCluster

MAX_FORM_BYTES: Final = 4 * 1024 * 1024
MAX_FIELDS: Final = 20_000
"""Limits of a form. A reset of a group has a field for each partition; a produced record has up to a few megabytes."""

MAX_STREAMS: Final = 250
"""Number of live parts of pages at the same time, in all browsers."""

STREAM_MS: Final = 30
"""Pause of each stream between two updates, for each open stream: all streams together have at most 33 updates a
second, however many pages are open."""

FIRST_MS: Final = 150
"""Time for which a page waits for the first sample, before it is shown without one."""

EVERY_MS: Final = 10_000
"""Time after which a live part is sent again even if there is no new sample, which also finds closed connections."""


class Terms(NamedTuple):
    """The settings that all pages share."""

    templates: Templates
    audit: ChangeLog
    allows_changes: bool
    opener: RecordOpener
    paths: Collection[str]
    """The pages that the navigation shows."""
    cluster_name: str
    """The bootstrap addresses, which the head of each page shows."""
    tails: Tails
    streams: set[object]
    """The open streams of server-sent events."""


class PageRequest:
    """A request of a visitor."""

    def __init__(self, request: Request, terms: Terms, visitor: Visitor, form: Mapping[str, str] | None = None) -> None:
        self.request = request
        self.terms = terms
        self.visitor = visitor
        self.form: Mapping[str, str] = form or {}

    @property
    def watched(self) -> WatchedCluster:
        return self.visitor.cluster

    @property
    def cluster(self) -> ClusterClient:
        return self.visitor.cluster.client

    @property
    def client(self) -> str:
        """The browser's address."""
        return self.request.client.host if self.request.client is not None else "?"

    @property
    def is_part(self) -> bool:
        """True if htmx asks for a part of the page."""
        return self.request.headers.get("hx-request") == "true"

    def path(self, name: str) -> str:
        """Returns a part of the request's path."""
        return str(self.request.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        """Returns a parameter of the URL."""
        return self.request.query_params.get(name, default).strip()

    def number(self, name: str, default: int, *, least: int = 0, most: int = (1 << 31) - 1) -> int:
        """Returns a whole number of the URL. Raises CommandError."""
        text = self.query(name) or str(default)
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= 19 and least <= int(text) <= most):
            raise misuse(f"{name} {text[:40]}: expected a whole number from {least} to {most}")
        return int(text)

    def field(self, name: str, *, required: bool = True) -> str:
        """Returns a field of the form. Raises CommandError if a required field is empty."""
        text = self.form.get(name, "").strip()
        if required and not text:
            raise misuse(f"the field {name} is empty")
        return text

    def render(self, template: str, values: Mapping[str, object], *, status: int = 200) -> HTMLResponse:
        """Returns a page."""
        notice = "" if self.is_part else self.visitor.take_notice()
        return HTMLResponse(self.text(template, {"notice": notice, **values}), status)

    def text(self, template: str, values: Mapping[str, object]) -> str:
        """Returns a template's text."""
        return self.terms.templates.render(template, {**self._shared(), **values})

    def _shared(self) -> dict[str, object]:
        return {
            "user": self.visitor.user,
            "csrf": self.visitor.csrf,
            "allows_changes": self.terms.allows_changes,
            "cluster_name": self.terms.cluster_name,
            "paths": self.terms.paths,
            "fault": self.watched.fault,
            "here": self.request.url.path,
        }

    def live(self, name: str, values: Callable[[], Mapping[str, object] | None]) -> Response:
        """Returns a stream of a page's live part, made anew for each sample; nothing is sent while there are no
        values."""

        async def events() -> AsyncGenerator[str, None]:
            while True:
                await self.watched.renewed(EVERY_MS)
                self.watched.look()
                await self.breathe()
                current = values()
                if current is not None:
                    yield event(name, self.text(f"{name}_live.html", current))

        return self.stream(events())

    async def breathe(self, least_ms: int = 0) -> None:
        """Waits between two updates of a stream: `least_ms`, or longer if there are many streams."""
        await self.cluster.pause(max(least_ms, len(self.terms.streams) * STREAM_MS))

    def stream(self, events: AsyncGenerator[str, None]) -> Response:
        """Returns a stream of server-sent events, which ends with the connection."""
        if len(self.terms.streams) >= MAX_STREAMS:
            return JSONResponse({"error": f"{MAX_STREAMS} live pages are open already"}, 503)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return EventStream(self._while_logged_in(events), self.terms.streams, headers)

    async def _while_logged_in(self, events: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
        async with aclosing(events):
            async for text in events:
                if self.visitor.is_out:
                    return
                yield text


class EventStream(StreamingResponse):
    """A response of server-sent events, which is counted while it is sent."""

    def __init__(self, events: AsyncGenerator[str, None], streams: set[object], headers: Mapping[str, str]) -> None:
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self._events = events
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._streams.add(self)
        try:
            async with aclosing(self._events):  # also if the connection ends while an event is sent
                await super().__call__(scope, receive, send)
        finally:
            self._streams.discard(self)


Handler: TypeAlias = Callable[[PageRequest], Awaitable[Response]]


async def read_form(request: Request) -> dict[str, str]:
    """Returns the fields of a form; of a field that is repeated, the last one. Raises CommandError."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            raise misuse(f"the form has more than {MAX_FORM_BYTES} bytes")
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict"))
    except ValueError:
        raise misuse(f"the form is malformed, or has more than {MAX_FIELDS} fields") from None
