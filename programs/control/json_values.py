"""Converts Kafka's messages, bytes and ids to JSON values."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode

from protocol.schema import fields_of
from protocol.types import Uuid


def json_of(value: object) -> object:
    """Returns a message, or a part of it: fields by name, only the size of records and other bytes, ids in
    base64url."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return {"bytes": len(value)}
    if isinstance(value, list | tuple):
        return [json_of(item) for item in value]
    return {
        field.name: uuid_text(getattr(value, field.name))
        if field.kind.name == "uuid"
        else json_of(getattr(value, field.name))
        for field in fields_of(type(value))
    }


def uuid_text(value: Uuid) -> str:
    """Returns an id in the form that Kafka's tools print."""
    return urlsafe_b64encode(value).rstrip(b"=").decode()


def bytes_of(value: bytes | None) -> object:
    """Returns bytes of a record: as text if they are UTF-8, else in base64."""
    if value is None:
        return None
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}
