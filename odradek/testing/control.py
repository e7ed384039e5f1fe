"""The client of a broker's control server (docs/control.md): JSON over HTTP on the loopback."""

from __future__ import annotations

import http.client
import json
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode

from odradek.testing.errors import BrokerError, ControlError

JsonObject: TypeAlias = dict[str, Any]

TIMEOUT_S: Final = 120.0
"""A journey of the clock answers when all that it brings has happened."""

NO_CONTROL: Final = (
    "this broker has no control server: it is there with odradek.profile=test and odradek.control.listener, "
    "and of a broker that is external its address is in ODRADEK_CONTROL"
)


class Control:
    """Questions to the control server of one broker, each on a connection of its own: threads may ask at once."""

    def __init__(self, address: str) -> None:
        """`address` is HOST:PORT; the empty one is that of no control server."""
        self.address = address

    @property
    def url(self) -> str:
        """Returns the URL before the paths of docs/control.md. Raises BrokerError where there is no control server."""
        if not self.address:
            raise BrokerError(NO_CONTROL)
        return f"http://{self.address}"

    def connect(self) -> Connection:
        """Returns a connection that stays open, on which what ends with a connection can be set."""
        return Connection(self.url.removeprefix("http://"))

    def get(self, path: str, **query: str | int | None) -> JsonObject:
        """Asks; what is None is left out of the query. Raises ControlError, BrokerError where nobody answers."""
        words = {name: value for name, value in query.items() if value is not None}
        return self._once("GET", f"{path}?{urlencode(words)}" if words else path, None)

    def post(self, path: str, body: JsonObject) -> JsonObject:
        """Asks with a body. Raises as `get`."""
        return self._once("POST", path, body)

    def delete(self, path: str) -> JsonObject:
        """Takes away what is at the path. Raises as `get`."""
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
        """Returns the object of an answer. Raises ControlError where it is refused, BrokerError where none comes."""
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
        """Ends the connection, and with it what was set `while_connected`."""
        self._http.close()
