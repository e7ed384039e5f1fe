"""Tests the Avro schemas of a registry, and ids without one."""

from __future__ import annotations

import pytest

from pipeline.errors import PipelineError
from pipeline.registry import UnusableSchema, registry_at
from tests.client.schema_registry import running_registry


def test_ids_without_a_schema_of_use_have_a_reason() -> None:
    with running_registry() as registry, registry_at(registry.url) as schemas:
        registry.add(7, "long")
        registry.add(8, "x", schemaType="PROTOBUF")
        registry.add(9, "x", references=[{"name": "a"}])
        assert schemas.schema(7) == "long"
        with pytest.raises(UnusableSchema, match="schema id 6 is not in the registry"):
            schemas.schema(6)
        with pytest.raises(UnusableSchema, match="schema id 8 has the type PROTOBUF, not AVRO"):
            schemas.schema(8)
        with pytest.raises(UnusableSchema, match="schema id 9 refers to other schemas"):
            schemas.schema(9)
        asked = len(registry.requests)
        with pytest.raises(UnusableSchema, match="schema id 4294967295 is not in the registry"):
            schemas.schema(2**32 - 1)
        assert len(registry.requests) == asked


def test_a_registry_that_has_an_error_or_is_none_ends_the_run() -> None:
    with running_registry() as registry, registry_at(registry.url) as schemas:
        registry.raw["/schemas/ids/7"] = (500, b"")
        with pytest.raises(PipelineError, match="answers /schemas/ids/7 with 500"):
            schemas.schema(7)
    with registry_at(registry.url) as schemas, pytest.raises(PipelineError, match="did not answer"):
        schemas.schema(7)
    with pytest.raises(PipelineError, match="--schema-registry 'h:x': expected"), registry_at("http://a:b@h:x"):
        pass
