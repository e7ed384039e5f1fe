"""Requests to a schema registry (Confluent's REST API).

They go to the host that the user named only, without redirects and proxies, so no other host gets the password. Answers
are bounded.
"""

from __future__ import annotations

import json
import ssl
from base64 import b64encode
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

MAX_ANSWER_BYTES: Final = 2 * 1024 * 1024
ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json"


class RegistryError(Exception):
    """The registry's answer is an error, or not a JSON object."""


class RegistryUnreachable(RegistryError):
    """The registry did not answer."""


class NotInRegistry(RegistryError):
    """The registry has nothing at this path."""


class RegistryAddress(NamedTuple):
    """A registry's address, and the user and password for it."""

    is_secure: bool
    host: str
    port: int | None
    path: str
    authorization: str

    def __str__(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"


def registry_address(url: str, login: str = "") -> RegistryAddress:
    """Returns the parts of a URL. `login` is USER:PASSWORD, and replaces that of the URL.

    Raises ValueError, which names the URL without its user and password.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
    except ValueError:
        is_valid = False
    if not is_valid or parts.hostname is None:
        raise ValueError(f"{url.rpartition('@')[2][:100]!r}: expected http://HOST:PORT or https://HOST")
    if parts.username is not None:
        login = login or f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    authorization = f"Basic {b64encode(login.encode()).decode()}" if login else ""
    path = quote(parts.path.rstrip("/"), safe="/%")
    return RegistryAddress(parts.scheme == "https", parts.hostname, port, path, authorization)


class RegistryConnection:
    """A connection to a registry."""

    def __init__(self, address: RegistryAddress, timeout_s: float) -> None:
        """`timeout_s` is the timeout of the connection, and of each read."""
        self._address = address
        if address.is_secure:
            context = ssl.create_default_context()
            self._http: HTTPConnection = HTTPSConnection(address.host, address.port, timeout=timeout_s, context=context)
        else:
            self._http = HTTPConnection(address.host, address.port, timeout=timeout_s)

    def close(self) -> None:
        self._http.close()

    def get(self, path: str) -> dict[str, object]:
        """Returns the object at a path. Raises RegistryError."""
        headers = {"Accept": ACCEPT}
        if self._address.authorization:
            headers["Authorization"] = self._address.authorization
        try:
            self._http.request("GET", self._address.path + path, headers=headers)
            response = self._http.getresponse()
            body = response.read(MAX_ANSWER_BYTES + 1)
        except (OSError, HTTPException, UnicodeError) as error:  # UnicodeError: no such name of a host
            self._http.close()
            raise RegistryUnreachable(f"the registry at {self._address} did not answer: {error or error!r}") from None
        if len(body) > MAX_ANSWER_BYTES:
            self._http.close()  # the rest would be read as the next answer
        answers = f"the registry at {self._address} answers {path[:100]}"
        if response.status != HTTPStatus.OK:
            error_class = NotInRegistry if response.status == HTTPStatus.NOT_FOUND else RegistryError
            raise error_class(f"{answers} with {response.status} {_message(body)}".rstrip())
        if len(body) > MAX_ANSWER_BYTES:
            raise RegistryError(f"{answers} with more than {MAX_ANSWER_BYTES} bytes")
        answer = _object(body)
        if answer is None:
            raise RegistryError(f"{answers} without a JSON object")
        return answer


def _object(body: bytes) -> dict[str, object] | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _message(body: bytes) -> str:
    """Returns the message of an error, in one line."""
    text = str((_object(body) or {}).get("message", ""))[:200]
    return "".join(character if character.isprintable() else " " for character in text)
