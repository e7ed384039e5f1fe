"""The client of a broker's control server (docs/control.md): JSON over HTTP on the loopback."""

from __future__ import annotations

import http.client
import json
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode

from odradek.testing.errors import BrokerError, ControlError

__tracebackhide__ = True

JsonObject: TypeAlias = dict[str, Any]

TIMEOUT_S: Final = 120.0
"""Longest wait for an answer: an advance of the clock answers when all that became due has happened."""

NO_CONTROL: Final = (
    "this broker has no control server: it needs odradek.profile=test and odradek.control.listener; "
    "set ODRADEK_CONTROL to the address of an external broker's"
)


class Control:
    """A client of a broker's control server. Each request has its own connection, so threads may share the client."""

    def __init__(self, address: str) -> None:
        """`address` is HOST:PORT, or "" if there is no control server."""
        self.address = address

    @property
    def url(self) -> str:
        """Returns the base URL of the paths in docs/control.md. Raises BrokerError if there is no control server."""
        if not self.address:
            raise BrokerError(NO_CONTROL)
        return f"http://{self.address}"

    def connect(self) -> Connection:
        """Returns a persistent connection, for faults that end with their connection."""
        return Connection(self.url.removeprefix("http://"))

    def get(self, path: str, **query: str | int | None) -> JsonObject:
        """Sends a GET; arguments that are None are left out of the query. Raises ControlError, and BrokerError if there
        is no answer."""
        words = {name: value for name, value in query.items() if value is not None}
        return self._once("GET", f"{path}?{urlencode(words)}" if words else path, None)

    def post(self, path: str, body: JsonObject) -> JsonObject:
        """Sends a POST. Raises like `get`."""
        return self._once("POST", path, body)

    def delete(self, path: str) -> JsonObject:
        """Sends a DELETE. Raises like `get`."""
        return self._once("DELETE", path, None)

    def _once(self, method: str, path: str, body: JsonObject | None) -> JsonObject:
        connection = self.connect()
        try:
            return connection.ask(method, path, body)
        finally:
            connection.close()


class Connection:
    """A connection to a control server, for one thread at a time."""

    def __init__(self, address: str) -> None:
        self._address = address
        host, _, port = address.rpartition(":")
        self._http = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=TIMEOUT_S)

    def ask(self, method: str, path: str, body: JsonObject | None = None) -> JsonObject:
        """Returns the JSON object of an answer. Raises ControlError if the request is rejected, BrokerError if there is
        no answer."""
        content = None if body is None else json.dumps(body).encode()
        headers = {} if content is None else {"Content-Type": "application/json"}
        try:
            self._http.request(method, path, content, headers)
            response = self._http.getresponse()
            answer: JsonObject = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise BrokerError(
                f"{method} {path}: no answer from the control server at {self._address}: {error!r}"
            ) from None
        if response.status >= 400:
            raise ControlError(response.status, str(answer.get("error", answer)))
        return answer

    def close(self) -> None:
        """Closes the connection, which removes the faults set with `while_connected`."""
        self._http.close()
