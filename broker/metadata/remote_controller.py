"""A controller in another process. The broker's own requests are sent directly, over connections that identify the
broker; clients' requests are sent in Envelopes. A `coordinator.cluster.controller.Controller`; see its docstrings
there.

Source: Kafka's NodeToControllerChannelManager, AutoTopicCreationManager, RPCProducerIdManager, AssignmentsManager.
"""

from __future__ import annotations

from typing import Final, TypeVar

from broker.metadata.controllers import Controllers
from broker.metadata.forwarding import FORWARD_MS, forward
from coordinator.cluster.controller import THIS_BROKER, Asker
from coordinator.cluster.requester import Requester
from protocol.api_key import ApiKey
from protocol.codec import decode
from protocol.errors import ErrorCode, KafkaError, ProtocolError, error_code
from protocol.messages.allocate_producer_ids import AllocateProducerIdsResponse
from protocol.schema import Kind, fields_of, identity

R = TypeVar("R")

ALLOCATE_MS: Final = 60_000
"""Timeout of a request for a block of producer ids; meanwhile clients that wait for an id retry."""

OF_BROKERS: Final = frozenset(
    {
        ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.ALTER_PARTITION,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.CONTROLLER_REGISTRATION,
    }
)
"""The APIs between brokers and controllers: the error code of a response applies to the whole request."""


class RemoteController:
    """The controller that leads the quorum at the time of each request."""

    def __init__(self, controllers: Controllers, session_ms: int) -> None:
        """`session_ms` is broker.session.timeout.ms, after which a heartbeat is no longer of use."""
        self._controllers = controllers
        self._session_ms = session_ms

    @property
    def active(self) -> None:
        return None

    @property
    def has_renounced(self) -> bool:
        return False

    async def forward(self, request: object, version: int, requester: Requester) -> bytes:
        """Returns the body of the response to a client's request. Raises KafkaError."""
        return await forward(self._controllers, request, version, requester)

    async def submit(self, request: object, response: type[R], asker: Asker = THIS_BROKER) -> R:
        api = identity(type(request))
        version = min(asker.version, api.versions.last)
        if api.key in OF_BROKERS:
            return await self._direct(request, response, ApiKey(api.key))
        if asker.requester is None:
            return await self._controllers.send(request, response, FORWARD_MS, code_of_all, max_version=version)
        return await self._forwarded(request, response, version, asker.requester)

    async def _direct(self, request: object, response: type[R], key: ApiKey) -> R:
        """Sends a request of the APIs between brokers and controllers. Raises the KafkaError in the response."""
        timeout_ms = ALLOCATE_MS if key is ApiKey.ALLOCATE_PRODUCER_IDS else self._session_ms
        answer = await self._controllers.send(request, response, timeout_ms, code_of)
        if code := error_code(code_of(answer)):
            raise KafkaError(code)
        if isinstance(answer, AllocateProducerIdsResponse):
            check_producer_ids(answer)
        return answer

    async def _forwarded(self, request: object, response: type[R], version: int, requester: Requester) -> R:
        """Sends a client's request in an Envelope."""
        try:
            return decode(response, version, await self.forward(request, version, requester))[0]
        except ProtocolError as error:
            message = f"the controller's answer cannot be read: {error}"
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message) from error


def code_of(response: object) -> int:
    """Returns the error code of a response of the APIs between brokers and controllers."""
    return int(getattr(response, "error_code", ErrorCode.NONE))


def check_producer_ids(answer: AllocateProducerIdsResponse) -> None:
    """Raises KafkaError for an invalid block of producer ids."""
    if answer.producer_id_start < 0 or answer.producer_id_len <= 0:
        message = f"the controller gave {answer.producer_id_len} producer ids from {answer.producer_id_start} on"
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message)


def code_of_all(response: object) -> int:
    """Returns NOT_CONTROLLER if any part of a response has that error, otherwise NONE, because many responses have no
    error code for the whole request (NodeToControllerRequestThread, by AbstractResponse.errorCounts).
    """
    return ErrorCode.NOT_CONTROLLER if has_code(response, ErrorCode.NOT_CONTROLLER) else ErrorCode.NONE


def has_code(message: object, code: ErrorCode) -> bool:
    """True if a message, or a part of it, has this error code."""
    for name, kind, _ in fields_of(type(message)):
        value = getattr(message, name)
        if name == "error_code" and value == code:
            return True
        if is_list_of_structs(kind) and any(has_code(item, code) for item in value or ()):
            return True
    return False


def is_list_of_structs(kind: Kind) -> bool:
    return kind.items is not None and kind.items.struct is not None
