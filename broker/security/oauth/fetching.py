"""Fetches the content of a URL in the calling thread, with a timeout for the whole answer.

urllib's timeout is for a single read: a server that sends a byte now and then would never time out, and would delay the
exit of the process, which waits for its threads.
"""

from __future__ import annotations

import http.client
import io
import socket
import urllib.request
from collections.abc import Callable
from functools import partial
from ssl import SSLContext
from typing import TYPE_CHECKING, Final

from broker.clock import Clock, Deadline
from broker.security.oauth.keys import MAX_KEYS_BYTES

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

SILENT_S: Final = 5.0
"""Longest silence of an issuer, while connecting and before its answer."""

WITHIN_MS: Final = 10_000
"""Timeout of the whole fetch, including redirects."""


def fetched(url: str, tls: SSLContext | None, clock: Clock, within_ms: int = WITHIN_MS) -> bytes:
    """Returns the content of a URL. Raises OSError, and other errors of the answer."""
    deadline = Deadline(clock, within_ms)
    opener = urllib.request.build_opener(_SameScheme(), _Plain(deadline), _Secured(deadline, tls))
    request = urllib.request.Request(url, headers={"Accept": "application/json"})
    with opener.open(request, timeout=min(SILENT_S, within_ms / 1000)) as response:
        data: bytes = response.read(MAX_KEYS_BYTES + 1)
    if len(data) > MAX_KEYS_BYTES:
        raise OSError(f"it has more than {MAX_KEYS_BYTES} bytes")
    return data


class _SameScheme(urllib.request.HTTPRedirectHandler):
    """Rejects redirects from https to another scheme, because the fetched keys decide which clients are
    authenticated.
    """

    def redirect_request(  # type: ignore[no-untyped-def]  # its arguments are what they are
        self, req, fp, code, msg, headers, newurl
    ) -> urllib.request.Request | None:
        if req.full_url.lower().startswith("https:") and not newurl.lower().startswith("https:"):
            raise OSError("it redirects from https to something else")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _Plain(urllib.request.HTTPHandler):
    """HTTP with a timeout for the whole answer."""

    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_timed(http.client.HTTPConnection, self._deadline), req)


class _Secured(urllib.request.HTTPSHandler):
    """HTTPS with a timeout for the whole answer."""

    def __init__(self, deadline: Deadline, tls: SSLContext | None) -> None:
        super().__init__(context=tls)
        self._deadline = deadline
        self._tls = tls

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_timed(http.client.HTTPSConnection, self._deadline), req, context=self._tls)


def _timed(
    kind: Callable[..., http.client.HTTPConnection], deadline: Deadline
) -> Callable[..., http.client.HTTPConnection]:
    """Returns a function that opens connections whose answers must arrive by the deadline."""

    def made(host: str, **settings: object) -> http.client.HTTPConnection:
        connection = kind(host, **settings)
        connection.response_class = partial(_TimedResponse, deadline)  # type: ignore[assignment]  # it is called alone
        return connection

    return made


class _TimedResponse(http.client.HTTPResponse):
    """An answer that must arrive by a deadline."""

    def __init__(self, deadline: Deadline, sock: socket.socket, debuglevel: int = 0, method: str | None = None) -> None:
        super().__init__(sock, debuglevel, method)
        self.fp = io.BufferedReader(_TimedReads(sock, self.fp, deadline))


class _TimedReads(io.RawIOBase):
    """Reads from a socket; the timeout of each read is the remaining time."""

    def __init__(self, sock: socket.socket, file: io.BufferedIOBase, deadline: Deadline) -> None:
        super().__init__()
        self._sock = sock
        self._file = file
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        if self._deadline.is_over:
            raise TimeoutError("its answer takes too long")
        self._sock.settimeout(min(SILENT_S, self._deadline.left_s))
        return self._file.readinto1(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()
