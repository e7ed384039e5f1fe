"""Tests the rules for all messages: names, versions, lazy compilation, words."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, get_type_hints

import pytest

from protocol.api_key import ApiKey
from protocol.codec import decode, encode
from protocol.messages import messages_of
from protocol.messages.header import RequestHeader
from protocol.schema import annotation_of, fields_of, identity
from tests.protocol.messages.samples import all_messages, samples, versions_of

NEWEST = {
    ApiKey.PRODUCE: 13,
    ApiKey.FETCH: 18,
    ApiKey.LIST_OFFSETS: 11,
    ApiKey.METADATA: 13,
    ApiKey.OFFSET_COMMIT: 10,
    ApiKey.OFFSET_FETCH: 10,
    ApiKey.API_VERSIONS: 5,
    ApiKey.INIT_PRODUCER_ID: 5,
    ApiKey.TXN_OFFSET_COMMIT: 6,
    ApiKey.SHARE_FETCH: 2,
}
"""Some of the newest stable versions, according to Kafka's table of APIs; version 6 of InitProducerId is not stable."""

FIRST = {
    ApiKey.ALTER_PARTITION: 2,
    ApiKey.SHARE_GROUP_HEARTBEAT: 1,
    ApiKey.SHARE_GROUP_DESCRIBE: 1,
    ApiKey.SHARE_FETCH: 1,
    ApiKey.SHARE_ACKNOWLEDGE: 1,
}
"""APIs whose first versions were an early access, or too old for brokers of Kafka 4; all others begin at 0."""


@pytest.mark.parametrize("api", ApiKey, ids=lambda api: api.name)
def test_request_and_response_agree_on_key_and_versions(api: ApiKey) -> None:
    messages = messages_of(api)
    assert messages.module == f"protocol.messages.{api.name.lower()}"
    assert identity(messages.request).key == api
    assert identity(messages.request).versions == identity(messages.response).versions
    assert identity(messages.request).versions.first == FIRST.get(api, 0)
    assert identity(messages.request).versions.last == NEWEST.get(api, identity(messages.request).versions.last)


@pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)
def test_every_message_comes_back_in_every_version(cls: type) -> None:
    for version in versions_of(cls):
        for value in samples(cls, version):
            data = encode(value, version)
            assert decode(cls, version, memoryview(data)) == (value, len(data))


@pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)
def test_every_message_says_what_it_is_for(cls: type) -> None:
    assert cls.__doc__
    assert cls.__doc__.endswith((".", "?"))


@pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)
def test_tags_are_distinct(cls: type) -> None:
    tags = [field.wire.tag for field in fields_of(cls) if field.wire.tag is not None]
    assert len(tags) == len(set(tags))


def test_the_client_id_is_readable_before_the_version_is_known() -> None:
    classic = encode(RequestHeader(request_api_key=18, request_api_version=3, correlation_id=7, client_id="c"), 1)
    assert encode(RequestHeader(request_api_key=18, request_api_version=3, correlation_id=7, client_id="c"), 2) == (
        classic + b"\x00"
    )


def test_importing_the_package_loads_no_message() -> None:
    code = (
        "import sys, protocol.messages; print([name for name in sys.modules if name.startswith('protocol.messages.')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_types_of_fields_are_those_that_typing_finds() -> None:
    classes: set[Any] = set(all_messages())
    classes |= {field.kind.struct for cls in classes for field in fields_of(cls) if field.kind.struct is not None}
    for cls in classes:
        assert {name: annotation_of(cls, name) for name in cls.__wire__} == get_type_hints(cls, include_extras=True)
