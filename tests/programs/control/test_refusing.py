"""Any request can be refused: the answer is one that its client can read, and says so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.handlers import APIS
from broker.requests.api import Api
from programs.control.refusing import BY_PARTITION, ERROR_FIELDS, joined, refusal, split
from protocol.api_key import ApiKey
from protocol.codec import decode, encode
from protocol.errors import ErrorCode
from protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse
from protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from protocol.schema import fields_of
from tests.broker.asking import produce_request
from tests.broker.extremes import plausible

CODE = ErrorCode.NOT_COORDINATOR
TOPIC_ID = bytes(range(16))
WITHOUT_ERROR = {ApiKey.FETCH, ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS, ApiKey.API_VERSIONS}
"""Of which others are made, or none."""


def row(key: ApiKey) -> Api:
    api = APIS.find(key)
    assert api is not None
    return api


def errors_of(message: object, version: int) -> Iterator[int]:
    """Yields the errors in a response, as far as its version has them."""
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if version not in field.wire.versions:
            continue
        if field.name in ERROR_FIELDS:
            yield value
        elif field.kind.items is not None and field.kind.items.struct is not None:
            for item in value or ():
                yield from errors_of(item, version)


@pytest.mark.parametrize("api", list(APIS), ids=lambda api: api.key.name)
def test_every_version_of_every_api_is_refused_in_an_answer_that_can_be_read(api: Api) -> None:
    for version in range(api.versions.first, api.versions.last + 1):
        refused = refusal(api, plausible(api.request, version, TOPIC_ID), CODE)
        answer: object = decode(api.response, version, encode(refused, version))[0]
        codes = set(errors_of(answer, version))
        assert codes == {CODE} or api.key in WITHOUT_ERROR, f"v{version}: {answer}"


def test_an_entry_of_a_request_is_an_entry_of_the_answer() -> None:
    refused = refusal(row(ApiKey.DESCRIBE_GROUPS), DescribeGroupsRequest(groups=["g", "h"]), CODE)
    assert isinstance(refused, DescribeGroupsResponse)
    assert [(group.group_id, group.error_code) for group in refused.groups] == [("g", CODE), ("h", CODE)]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    offsets = refusal(row(ApiKey.OFFSET_FETCH), request, CODE)
    assert isinstance(offsets, OffsetFetchResponse)
    assert [(group.group_id, group.error_code, group.topics) for group in offsets.groups] == [("g", CODE, [])]


def test_a_request_is_divided_and_its_answers_are_joined() -> None:
    api = row(ApiKey.PRODUCE)
    request = produce_request("t", (0, b"a"), (1, b"b"), (2, b"c"))
    meant, rest = split(request, BY_PARTITION[ApiKey.PRODUCE], lambda topic, index: index == 1)
    assert meant == produce_request("t", (1, b"b"))
    assert rest == produce_request("t", (0, b"a"), (2, b"c"))
    assert request == produce_request("t", (0, b"a"), (1, b"b"), (2, b"c"))
    written = [PartitionProduceResponse(index=index, error_code=0, base_offset=5) for index in (0, 2)]
    response = ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=written)])
    both = joined(api, response, refusal(api, meant, CODE))
    assert isinstance(both, ProduceResponse)
    (topic,) = both.responses
    assert [(one.index, one.error_code) for one in topic.partition_responses] == [(0, 0), (2, 0), (1, CODE)]
