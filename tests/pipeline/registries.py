"""A schema registry for tests: it answers GET /schemas/ids/N."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@contextmanager
def registry_of(
    bodies: Mapping[int, bytes], logins: list[str | None] | None = None, redirect: str = ""
) -> Iterator[str]:
    """Serves answers by the ids of schemas, and collects the Authorization of requests; or redirects every request to
    another address. Yields HOST:PORT.
    """

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if logins is not None:
                logins.append(self.headers["Authorization"])
            if redirect:
                self.send_response(302)
                self.send_header("Location", redirect + self.path)
                self.end_headers()
                return
            body = bodies.get(int(self.path.removeprefix("/schemas/ids/")))
            self.send_response(404 if body is None else 200)
            self.end_headers()
            self.wfile.write(body or b"{}")

        def log_message(self, format: str, *args: object) -> None:
            """Prints nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    serving = Thread(target=server.serve_forever, daemon=True)
    serving.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    serving.join()
