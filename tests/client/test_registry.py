"""Tests requests to a schema registry, and what is said about a registry that answers something else."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator

import pytest

from client.registry import (
    MAX_ANSWER_BYTES,
    NotInRegistry,
    RegistryConnection,
    RegistryError,
    RegistryUnreachable,
    registry_address,
)
from tests.client.schema_registry import Registry, running_registry

PATH = "/schemas/ids/7"
LOGIN = f"Basic {b64encode(b'ann:p@ss').decode()}"


@pytest.fixture
def registry() -> Iterator[Registry]:
    with running_registry() as registry:
        yield registry


def get(url: str, login: str = "") -> dict[str, object]:
    connection = RegistryConnection(registry_address(url, login), 10)
    try:
        return connection.get(PATH)
    finally:
        connection.close()


def test_an_answer_is_read_with_the_login_of_the_url_or_of_a_file(registry: Registry) -> None:
    registry.add(7, "long")
    place = registry.url.removeprefix("http://")
    assert get(f"http://{place}/") == {"schema": "long"}
    assert get(f"http://ann:p%40ss@{place}") == {"schema": "long"}
    assert get(f"http://other:word@{place}", "ann:p@ss") == {"schema": "long"}
    assert registry.authorizations == [None, LOGIN, LOGIN]


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (200, b"no json", f"answers {PATH} without a JSON object"),
        (200, b"[1]", "without a JSON object"),
        (200, b"[" * 100_000, "without a JSON object"),
        (200, b" " * (MAX_ANSWER_BYTES + 1), f"more than {MAX_ANSWER_BYTES} bytes"),
        (404, b" " * (MAX_ANSWER_BYTES + 1), "with 404"),
        (500, b'{"message": "out\\r\\nof \\u001b[31mmemory"}', r"with 500 out  of  \[31mmemory$"),
        (500, b'{"message": ["x"]}', "with 500"),
    ],
)
def test_another_answer_is_explained(registry: Registry, status: int, body: bytes, problem: str) -> None:
    registry.raw[PATH] = (status, body)
    with pytest.raises(RegistryError, match=problem):
        get(registry.url)


def test_a_connection_is_of_use_after_an_answer_that_was_too_long(registry: Registry) -> None:
    registry.raw[PATH] = (200, b" " * (MAX_ANSWER_BYTES + 1000))
    registry.add(8, "long")
    connection = RegistryConnection(registry_address(registry.url), 10)
    with pytest.raises(RegistryError, match="more than"):
        connection.get(PATH)
    assert connection.get("/schemas/ids/8") == {"schema": "long"}
    connection.close()


def test_a_redirect_is_not_followed_so_no_other_host_gets_the_password(registry: Registry) -> None:
    with running_registry() as other:
        other.add(7, "long")
        registry.raw[PATH] = (302, f"{other.url}{PATH}".encode())
        with pytest.raises(RegistryError, match="with 302") as raised:
            get(registry.url, "ada:secret")
    assert other.requests == []
    assert "secret" not in str(raised.value)


def test_an_unknown_id_is_told_from_a_registry_that_is_gone() -> None:
    with running_registry() as registry, pytest.raises(NotInRegistry, match="with 404 Schema not found"):
        get(registry.url)
    place = registry.url.removeprefix("http://")
    with pytest.raises(RegistryUnreachable, match=f"the registry at {place} did not answer") as raised:
        get(f"http://ada:secret@{place}")
    assert "secret" not in str(raised.value)
    with pytest.raises(RegistryUnreachable):
        get(f"http://{'a' * 70}.invalid")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ada:secret@registry:8081",
        "ftp://ada:secret@registry",
        "http://ada:secret@r:x",
        "http://ada:secret@",
        "http://ada:secret@r?y=1",
        "file:///etc/passwd",
        "http://[1",
    ],
)
def test_a_url_that_is_none_is_named_without_its_password(url: str) -> None:
    with pytest.raises(ValueError, match=r"expected http://HOST:PORT") as raised:
        registry_address(url)
    assert "secret" not in str(raised.value)


def test_a_url_may_have_a_login_and_a_path() -> None:
    address = registry_address("https://ana:se%63ret@registry.example/älter/")
    assert address[:4] == (True, "registry.example", None, "/%C3%A4lter")
    assert address.authorization == f"Basic {b64encode(b'ana:secret').decode()}"
    assert "secret" not in str(address)


def test_an_answer_may_have_any_schema(registry: Registry) -> None:
    registry.add(7, {"type": "array", "items": "long"})
    assert json.loads(str(get(registry.url)["schema"])) == {"type": "array", "items": "long"}
