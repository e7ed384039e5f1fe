"""DeleteTopics (20): deletes topics, from the metadata at once, from the disk after file.delete.delay.ms.

v1 adds the throttle time, v4 is flexible, v5 adds messages to errors, v6 deletes by id as well (KIP-516).
"""

from __future__ import annotations

from broker.exchange.authorisation import DELETE_TOPIC, DESCRIBE_TOPIC, by_handler
from broker.requests.api import Api
from broker.requests.call import HostCall
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse


async def delete_topics(call: HostCall[DeleteTopicsRequest]) -> DeleteTopicsResponse:
    return await call.host.controller.delete_topics(call.request, call.version)


API = Api(DeleteTopicsRequest, DeleteTopicsResponse, delete_topics, by_handler(DESCRIBE_TOPIC, DELETE_TOPIC))
