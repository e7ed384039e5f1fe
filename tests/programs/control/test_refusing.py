"""Tests the rejection of a part of a request: its partitions are divided, and the answers joined."""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.rejection import rejection
from broker.handlers import APIS
from programs.control.refusing import BY_PARTITION, joined, split
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from tests.broker.asking import produce_request

CODE = ErrorCode.NOT_COORDINATOR
VERSION = 12


def row(key: ApiKey) -> Api:
    api = APIS.find(key)
    assert api is not None
    return api


def test_a_request_is_divided_and_its_answers_are_joined() -> None:
    api = row(ApiKey.PRODUCE)
    request = produce_request("t", (0, b"a"), (1, b"b"), (2, b"c"))
    meant, rest = split(request, BY_PARTITION[ApiKey.PRODUCE], lambda topic, index: index == 1)
    assert meant == produce_request("t", (1, b"b"))
    assert rest == produce_request("t", (0, b"a"), (2, b"c"))
    assert request == produce_request("t", (0, b"a"), (1, b"b"), (2, b"c"))
    written = [PartitionProduceResponse(index=index, error_code=0, base_offset=5) for index in (0, 2)]
    response = ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=written)])
    both = joined(api, response, rejection(api, meant, VERSION, KafkaError(CODE)))
    assert isinstance(both, ProduceResponse)
    (topic,) = both.responses
    assert [(one.index, one.error_code) for one in topic.partition_responses] == [(0, 0), (2, 0), (1, CODE)]
