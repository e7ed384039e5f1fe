"""Posts over HTTP/1.1, each on its own connection; only the answer's status is read.

The timeout covers the whole post: a receiver that sends a byte now and then has no more time than a silent receiver. A
cancelled post ends at once.

Source: RFC 9112.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from ssl import SSLContext

STATUS_LINE: Final = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})\b")
FINAL_STATUS: Final = 200
"""The first final status; lower ones are interim (RFC 9110)."""
PORTS: Final = {"http": 80, "https": 443}
PATH_CHARACTERS: Final = "/%:@!$&'()*+,;=~?"
"""Characters of a path that need no escape, beside letters, digits and -._~."""


class NoAnswer(Exception):
    """The receiver could not be reached, or did not send a valid HTTP answer in time."""


class PostTarget(NamedTuple):
    """The receiver of posts."""

    host: str
    port: int
    is_secured: bool
    authority: str
    """Host and port, as the Host header has them."""
    target: str
    """Path and query, as the request line has them."""


def endpoint_of(url: str) -> PostTarget:
    """Returns the parts of an http or https URL that has a host."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    authority = parts.netloc.rpartition("@")[2]
    return PostTarget(host, port, parts.scheme == "https", authority, quote(target, safe=PATH_CHARACTERS))


async def post(endpoint: PostTarget, body: bytes, content_type: str, tls: SSLContext | None, timeout_s: float) -> int:
    """Returns the status of the answer. `tls` is the context of an https endpoint. Raises NoAnswer."""
    try:
        async with asyncio.timeout(timeout_s):
            return await _post(endpoint, body, content_type, tls)
    except TimeoutError as error:
        raise NoAnswer(f"no answer within {timeout_s:g} s") from error
    except (OSError, ValueError) as error:  # ValueError: an invalid host name, or a line that is too long
        raise NoAnswer(str(error) or repr(error)) from error


async def _post(endpoint: PostTarget, body: bytes, content_type: str, tls: SSLContext | None) -> int:
    reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port, ssl=tls)
    try:
        head = (
            f"POST {endpoint.target} HTTP/1.1\r\nHost: {endpoint.authority}\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        writer.writelines((head.encode(), body))
        return await _status(reader)
    finally:
        writer.transport.abort()


async def _status(reader: asyncio.StreamReader) -> int:
    """Returns the final status. Raises ValueError if the answer is not HTTP."""
    while True:
        line = await reader.readline()
        match = STATUS_LINE.match(line)
        if match is None:
            raise ValueError(f"the answer is not HTTP: {line[:80]!r}" if line else "it ended without an answer")
        status = int(match[1])
        if status >= FINAL_STATUS:
            return status
        while (await reader.readline()).strip():
            pass  # skips the headers of an interim answer
