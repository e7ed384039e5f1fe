"""Posts over HTTP/1.1, each by a connection of its own, of whose answer nothing counts but the status.

The time that a post may take is that of all its parts together: a receiver that sends a byte now and then has no more
of it than one that is silent. A post that is cancelled is over at once.
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
"""Those below come before the one that counts."""
PORTS: Final = {"http": 80, "https": 443}
PATH_CHARACTERS: Final = "/%:@!$&'()*+,;=~?"
"""Characters of a path that stand for themselves, beside letters, digits and -._~."""


class NoAnswer(Exception):
    """A receiver was not reached, or said nothing that is HTTP, in time."""


class PostTarget(NamedTuple):
    """The receiver of posts."""

    host: str
    port: int
    is_secured: bool
    authority: str
    """The host with its port, as requests name it."""
    target: str
    """The path with its query, as requests name it."""


def endpoint_of(url: str) -> PostTarget:
    """Returns the parts of an http or https URL that has a host."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    authority = parts.netloc.rpartition("@")[2]
    return PostTarget(host, port, parts.scheme == "https", authority, quote(target, safe=PATH_CHARACTERS))


async def post(endpoint: PostTarget, body: bytes, content_type: str, tls: SSLContext | None, timeout_s: float) -> int:
    """Returns the status of the answer. `tls` is the context for an endpoint that is secured. Raises NoAnswer."""
    try:
        async with asyncio.timeout(timeout_s):
            return await _post(endpoint, body, content_type, tls)
    except TimeoutError as error:
        raise NoAnswer(f"no answer within {timeout_s:g} s") from error
    except (OSError, ValueError) as error:  # the latter for a host that is no name, and a line without an end
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
    """Returns the status that counts. Raises ValueError for what is no HTTP."""
    while True:
        line = await reader.readline()
        match = STATUS_LINE.match(line)
        if match is None:
            raise ValueError(f"it answers {line[:80]!r}, which is no HTTP" if line else "it ended without an answer")
        status = int(match[1])
        if status >= FINAL_STATUS:
            return status
        while (await reader.readline()).strip():
            pass  # what it says beside a status that is not the last
