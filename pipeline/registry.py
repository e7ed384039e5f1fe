"""Avro schemas of a schema registry (Confluent's REST API), by the ids in the frames of values."""

from __future__ import annotations

import json
from base64 import b64encode
from http import HTTPStatus
from http.client import HTTPException
from typing import Final
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from pipeline.errors import PipelineError

TIMEOUT_S: Final = 10
MAX_ANSWER_BYTES: Final = 2 * 1024 * 1024
ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json"


class NoRedirect(HTTPRedirectHandler):
    """Follows no redirect: it would take the password to another host."""

    def redirect_request(self, *_: object) -> None:
        return None


OPENER: Final = build_opener(ProxyHandler({}), NoRedirect())


class UnknownSchema(PipelineError):
    """The registry has no schema of this id."""


def avro_schema(registry: str, number: int) -> str:
    """Returns the schema of an id. `registry` is http(s)://[USER:PASSWORD@]HOST:PORT. Raises UnknownSchema,
    PipelineError.

    A schema with references is rejected: Spark takes a single schema.
    """
    answer = _get(registry, f"/schemas/ids/{number}")
    kind = answer.get("schemaType", "AVRO")
    if kind != "AVRO":
        raise PipelineError(f"schema {number}: its type is {kind}, but values in confluent-avro have Avro schemas")
    if answer.get("references"):
        raise PipelineError(f"schema {number} refers to other schemas; give a whole schema with --schema FILE")
    return str(answer.get("schema", ""))


def _get(registry: str, path: str) -> dict[str, object]:
    try:
        parts = urlsplit(registry)
        _ = parts.port  # an error unless it is a port
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise PipelineError(
            f"--schema-registry {registry.rpartition('@')[2][:100]}: expected http://HOST:PORT or https://HOST"
        )
    host = parts.netloc.rpartition("@")[2]
    headers = {"Accept": ACCEPT}
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
    request = Request(f"{parts.scheme}://{host}{parts.path.rstrip('/')}{path}", headers=headers)
    try:
        with OPENER.open(request, timeout=TIMEOUT_S) as response:
            body = response.read(MAX_ANSWER_BYTES + 1)
        if len(body) > MAX_ANSWER_BYTES:
            raise PipelineError(f"the registry at {host} answers {path} with more than {MAX_ANSWER_BYTES} bytes")
        answer = json.loads(body)
    except HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            raise UnknownSchema(f"the registry at {host} has no {path}") from None
        raise PipelineError(f"the registry at {host} answers {path} with {error.code} {error.reason}") from None
    except (OSError, HTTPException) as error:
        raise PipelineError(f"the registry at {host} did not answer: {error or repr(error)}") from None
    except (ValueError, RecursionError):
        raise PipelineError(f"the registry at {host} answers {path} without JSON") from None
    if not isinstance(answer, dict):
        raise PipelineError(f"the registry at {host} answers {path} without an object")
    return answer
