"""HTTP for scrapers: one GET or HEAD, one answer, then the connection is closed. Pure functions of bytes.

Source: RFC 9112.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

MAX_HEAD_BYTES: Final = 8192
"""Maximum size of a request's line and headers, as in common web servers."""

END_OF_HEAD: Final = b"\r\n\r\n"
REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
TEXT: Final = "text/plain; charset=utf-8"


class HttpRequest(NamedTuple):
    """A request's line and headers."""

    path: str
    is_head: bool
    headers: Mapping[str, str]
    """The headers by lower-case name."""


class HttpResponse(NamedTuple):
    """A status, and a body in pieces."""

    status: int
    body: Sequence[bytes]
    content_type: str = TEXT


class BadRequest(Exception):
    """The bytes are not a valid request, or not a supported one."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.response = plain(status, reason)


def plain(status: int, text: str) -> HttpResponse:
    """Returns a response of one line."""
    return HttpResponse(status, (f"{text}\n".encode(),))


def parse(received: bytes | bytearray) -> HttpRequest | None:
    """Returns the request; None if it is incomplete. Raises BadRequest."""
    end = received.find(END_OF_HEAD, 0, MAX_HEAD_BYTES)
    if end < 0:
        if len(received) >= MAX_HEAD_BYTES:
            raise BadRequest(431, f"a request may have at most {MAX_HEAD_BYTES} bytes of headers")
        return None
    line, *lines = received[:end].decode("latin-1").split("\r\n")
    parts = line.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise BadRequest(400, "not an HTTP/1.1 request")
    method, target, _ = parts
    if method not in ("GET", "HEAD"):
        raise BadRequest(405, "only GET and HEAD are served")
    headers = {name.strip().lower(): value.strip() for name, _, value in (text.partition(":") for text in lines)}
    return HttpRequest(target.partition("?")[0], method == "HEAD", headers)


def encoded(response: HttpResponse, *, is_head: bool = False) -> list[bytes]:
    """Returns the bytes of a response, in pieces."""
    head = (
        f"HTTP/1.1 {response.status} {REASONS[response.status]}\r\n"
        f"Content-Type: {response.content_type}\r\n"
        f"Content-Length: {sum(map(len, response.body))}\r\n"
        "Connection: close\r\n\r\n"
    )
    return [head.encode("latin-1"), *(() if is_head else response.body)]
