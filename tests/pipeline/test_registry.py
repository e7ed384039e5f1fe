"""Tests the schemas of a registry, and what is said about a registry that answers something else."""

from __future__ import annotations

import json

import pytest

from pipeline.errors import PipelineError
from pipeline.registry import MAX_ANSWER_BYTES, UnknownSchema, avro_schema
from tests.pipeline.registries import registry_of

SCHEMA = '{"type": "long"}'


def test_a_schema_is_fetched_with_the_login_of_the_url() -> None:
    logins: list[str | None] = []
    with registry_of({7: json.dumps({"schema": SCHEMA}).encode()}, logins) as place:
        assert avro_schema(f"http://{place}/", 7) == SCHEMA
        assert avro_schema(f"http://ann:p%40ss@{place}", 7) == SCHEMA
    assert logins == [None, "Basic YW5uOnBAc3M="]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"no json", "answers /schemas/ids/7 without JSON"),
        (b"[1]", "without an object"),
        (b"[" * 100_000, "without JSON"),
        (b" " * (MAX_ANSWER_BYTES + 1), f"more than {MAX_ANSWER_BYTES} bytes"),
        (b'{"schema": "x", "schemaType": "PROTOBUF"}', "its type is PROTOBUF"),
        (b'{"schema": "x", "references": [{"name": "a"}]}', "schema 7 refers to other schemas"),
    ],
)
def test_another_answer_is_explained(body: bytes, problem: str) -> None:
    with registry_of({7: body}) as place, pytest.raises(PipelineError, match=problem):
        avro_schema(f"http://{place}", 7)


def test_a_redirect_is_not_followed_so_no_other_host_gets_the_password() -> None:
    logins: list[str | None] = []
    schemas = {7: json.dumps({"schema": SCHEMA}).encode()}
    with (
        registry_of(schemas, logins) as other,
        registry_of({}, redirect=f"http://{other}") as place,
        pytest.raises(PipelineError, match="with 302"),
    ):
        avro_schema(f"http://ada:secret@{place}", 7)
    assert logins == []


@pytest.mark.parametrize("address", ["ada:secret@registry:8081", "ftp://ada:secret@registry", "http://ada:secret@r:x"])
def test_an_address_that_is_none_is_named_without_its_password(address: str) -> None:
    with pytest.raises(PipelineError, match="expected http://HOST:PORT") as raised:
        avro_schema(address, 7)
    assert "secret" not in str(raised.value)


def test_an_unknown_id_is_told_from_a_registry_that_is_gone() -> None:
    with registry_of({}) as place, pytest.raises(UnknownSchema, match="has no /schemas/ids/2147483648"):
        avro_schema(f"http://{place}", 2**31)
    with pytest.raises(PipelineError, match=f"the registry at {place} did not answer"):
        avro_schema(f"http://{place}", 7)


@pytest.mark.parametrize("url", ["ftp://h", "h:8081", "http://", "file:///etc/passwd", "http://h:port"])
def test_another_url_is_rejected(url: str) -> None:
    with pytest.raises(PipelineError, match="expected http://HOST:PORT"):
        avro_schema(url, 7)
