"""A schema registry for tests, with the part of Confluent's REST API that reads schemas."""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

Schema = Mapping[str, object]


class Registry:
    """A registry on a free port."""

    def __init__(self) -> None:
        self.schemas: dict[int, Schema] = {}
        """The answers to /schemas/ids/ID."""
        self.serialized: dict[int, bytes] = {}
        """The files of Protobuf, by id."""
        self.versions: dict[tuple[str, str], Schema] = {}
        """The answers to /subjects/NAME/versions/N."""
        self.requests: list[str] = []
        self.authorizations: list[str | None] = []
        self.raw: dict[str, tuple[int, bytes]] = {}
        """Answers of any content, by path."""
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.requests.append(self.path)
                registry.authorizations.append(self.headers["Authorization"])
                status, body = registry.raw.get(self.path) or registry.answer(self.path)
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", body.decode())
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def add(self, number: int, schema: object, **more: object) -> int:
        """Adds a schema of Avro, or of another type."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        self.schemas[number] = {"schema": text, **more}
        return number

    def answer(self, path: str) -> tuple[int, bytes]:
        parts = urlsplit(path)
        words = parts.path.strip("/").split("/")
        schema: Schema | None = None
        if words[:2] == ["schemas", "ids"]:
            schema = self.schemas.get(int(words[2]))
            if schema is not None and parse_qs(parts.query).get("format") == ["serialized"]:
                schema = {**schema, "schema": b64encode(self.serialized[int(words[2])]).decode()}
        elif words[0] == "subjects":
            schema = self.versions.get((words[1], words[3]))
        if schema is None:
            return 404, b'{"error_code": 40403, "message": "Schema not found"}'
        return 200, json.dumps(schema).encode()


@contextmanager
def running_registry() -> Iterator[Registry]:
    """Runs a registry."""
    registry = Registry()
    registry.thread.start()
    try:
        yield registry
    finally:
        registry.server.shutdown()
        registry.server.server_close()
