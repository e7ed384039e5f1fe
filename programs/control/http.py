"""The control server's HTTP: requests with a small JSON body on persistent connections. Pure.

Source: RFC 9112, and RFC 9110 for the statuses.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote

MAX_CONTROL_HEAD_BYTES: Final = 16 * 1024
MAX_BODY_BYTES: Final = 1 << 20
"""Largest body: a fault has some hundred bytes, the users and access control lists of a test a few thousand."""

CONTROL_HEAD_END: Final = b"\r\n\r\n"
JSON: Final = "application/json"
STATUSES: Final = {
    200: "OK",
    201: "Created",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    411: "Length Required",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
}
NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class ControlRequest(NamedTuple):
    """One request. Its path is decoded and split; its headers have lower-case names."""

    method: str
    path: tuple[str, ...]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def stays_open(self) -> bool:
        """True if the client may send another request on the connection."""
        return self.headers.get("connection", "").lower() != "close"


class ControlAnswer(NamedTuple):
    """A status, and the content of the JSON body."""

    status: int
    content: object
    headers: Mapping[str, str] = NO_HEADERS


class RequestError(Exception):
    """The rejection of a request; its text tells the client what is expected."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] = NO_HEADERS) -> None:
        super().__init__(reason)
        self.answer = ControlAnswer(status, {"error": reason}, headers)


def parse_request(received: bytes | bytearray) -> tuple[ControlRequest, int] | None:
    """Returns the first request and its size in bytes; None if it is incomplete. Raises RequestError, after which the
    connection must be closed."""
    end = received.find(CONTROL_HEAD_END, 0, MAX_CONTROL_HEAD_BYTES)
    if end < 0:
        if len(received) >= MAX_CONTROL_HEAD_BYTES:
            raise RequestError(431, f"a request may have at most {MAX_CONTROL_HEAD_BYTES} bytes of headers")
        return None
    line, *lines = received[:end].decode("latin-1").split("\r\n")
    words = line.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or not words[1].startswith("/"):
        raise RequestError(400, f"{line[:80]!r} is not a request line of HTTP/1.1, such as GET /v1/faults HTTP/1.1")
    headers = {name.strip().lower(): value.strip() for name, _, value in (text.partition(":") for text in lines)}
    start = end + len(CONTROL_HEAD_END)
    behind = start + _body_bytes(words[0], headers)
    if len(received) < behind:
        return None
    path, _, query = words[1].partition("?")
    parts = tuple(unquote(part) for part in path.split("/") if part)
    arguments = dict(parse_qsl(query, keep_blank_values=True))
    return ControlRequest(words[0], parts, arguments, headers, bytes(received[start:behind])), behind


def _body_bytes(method: str, headers: Mapping[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise RequestError(411, "a body is sent with Content-Length, not in chunks")
    text = headers.get("content-length", "0")
    if not (text.isascii() and text.isdecimal()):
        raise RequestError(400, f"Content-Length: {text!r} is not a number of bytes")
    if int(text) > MAX_BODY_BYTES:
        raise RequestError(413, f"a body may have at most {MAX_BODY_BYTES} bytes")
    if method == "POST" and "content-length" not in headers:
        raise RequestError(411, "a POST needs Content-Length; 0 without a body")
    return int(text)


def check_origin(request: ControlRequest, hosts: frozenset[str]) -> None:
    """Raises RequestError for a browser's request on behalf of a web page: a foreign page could otherwise control a
    broker on the machine of its visitor. `hosts` are the server's own names; an empty set accepts any."""
    if "origin" in request.headers:
        raise RequestError(403, "web pages have no access; a client sends no Origin")
    host = request.headers.get("host", "")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    if hosts and host and name.strip("[]").lower() not in hosts:
        raise RequestError(403, f"Host: {host} is not this server; it is {' or '.join(sorted(hosts))}")


def content_of(request: ControlRequest) -> Mapping[str, object]:
    """Returns the JSON object in a request's body, {} without a body. Raises RequestError."""
    if not request.body:
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise RequestError(415, f"Content-Type: {kind or 'none'} is not {JSON}")
    try:
        content = json.loads(request.body)
    except (ValueError, RecursionError) as error:
        raise RequestError(400, f"the body is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise RequestError(400, 'the body is not a JSON object, such as {"api": "Fetch", "delay_ms": 100}')
    return content


def encoded_answer(answer: ControlAnswer, *, stays_open: bool) -> bytes:
    """Returns the bytes of an answer."""
    body = json.dumps(answer.content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
    lines = [
        f"HTTP/1.1 {answer.status} {STATUSES[answer.status]}",
        f"Content-Type: {JSON}",
        f"Content-Length: {len(body)}",
        f"Connection: {'keep-alive' if stays_open else 'close'}",
        *(f"{name}: {value}" for name, value in answer.headers.items()),
    ]
    return "\r\n".join(lines).encode("latin-1") + CONTROL_HEAD_END + body
