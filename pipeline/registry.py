"""Avro schemas of a schema registry, by the ids in the frames of values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from client.registry import NotInRegistry, RegistryConnection, RegistryError, registry_address
from pipeline.errors import PipelineError

TIMEOUT_S: Final = 10
MAX_ID: Final = 2**31 - 1
"""The largest id that a registry gives; a frame has four bytes for it."""


class UnusableSchema(Exception):
    """The registry has no schema of this id that can decode values. The text is a reason for a dead letter."""


class AvroSchemas:
    """The schemas of a registry."""

    def __init__(self, connection: RegistryConnection) -> None:
        self._connection = connection

    def schema(self, number: int) -> str:
        """Returns the schema of an id. Raises UnusableSchema; PipelineError if the registry can't be asked.

        A schema with references is rejected: Spark takes a single schema.
        """
        absent = UnusableSchema(f"schema id {number} is not in the registry")
        if number > MAX_ID:
            raise absent
        try:
            answer = self._connection.get(f"/schemas/ids/{number}")
        except NotInRegistry:
            raise absent from None
        except RegistryError as error:
            raise PipelineError(str(error)) from None
        kind = answer.get("schemaType") or "AVRO"
        if kind != "AVRO":
            raise UnusableSchema(f"schema id {number} has the type {str(kind)[:40]}, not AVRO")
        if answer.get("references"):
            raise UnusableSchema(f"schema id {number} refers to other schemas")
        return str(answer.get("schema", ""))


@contextmanager
def registry_at(url: str) -> Iterator[AvroSchemas]:
    """Yields a registry. `url` is http(s)://[USER:PASSWORD@]HOST:PORT. Raises PipelineError."""
    try:
        address = registry_address(url)
    except ValueError as error:
        raise PipelineError(f"--schema-registry {error}") from None
    connection = RegistryConnection(address, TIMEOUT_S)
    try:
        yield AvroSchemas(connection)
    finally:
        connection.close()
