"""Sends every number to a controller's listener at its extremes: it answers, logs no bug of its own, and decides."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from broker.handlers.controller import CONTROLLER_APIS, NAMES
from broker.request.context import ClientConnection
from coordinator.cluster.quorum import TOPIC_ID
from coordinator.cluster.topics.names import METADATA_TOPIC
from programs.run.controller_server import ControllerServer
from protocol.api_key import ApiKey
from protocol.schema import fields_of
from tests.broker.controllers import is_active, serving_controller
from tests.broker.extremes import INDEXES, Extreme, extremes
from tests.broker.inprocess import LONG_S, request_frame
from tests.log_lines import Line, errors
from tests.waiting import until

SIZE_BYTES = 4
EPOCHS = frozenset({"replica_epoch", "leader_epoch", "current_leader_epoch"})
OWN = [name for name in NAMES if name.startswith("controller.")]


def about_metadata(extreme: Extreme, server: ControllerServer) -> Any:
    """Returns the request. If it has partitions of topics, it is about the metadata log, in its present epoch."""
    request = extreme.build(TOPIC_ID)
    for topic in getattr(request, "topics", []):
        if hasattr(topic, "topic_name"):
            topic.topic_name = METADATA_TOPIC
        elif hasattr(topic, "name"):
            topic.name = METADATA_TOPIC
        del topic.partitions[0]  # the other has the extreme number
        for field in fields_of(type(topic.partitions[0])):
            if field.name not in extreme.path:
                present = 0 if field.name in INDEXES else server.part.log.epoch if field.name in EPOCHS else None
                if present is not None:
                    setattr(topic.partitions[0], field.name, present)
    return request


@pytest.mark.parametrize("name", OWN)
async def test_any_number_may_be_at_its_extremes(name: str, tmp_path: Path, logged: list[Line]) -> None:
    async with serving_controller(tmp_path) as server:
        api = CONTROLLER_APIS.find(ApiKey[name.removeprefix("controller.").upper()])
        assert api is not None
        (listener,) = server.listeners
        for version in range(api.versions.first, api.versions.last + 1):
            for extreme in extremes(api.request, version):
                connection = ClientConnection("CONTROLLER", lambda _, answer: answer)
                frame = request_frame(about_metadata(extreme, server), version)[SIZE_BYTES:]
                answer: Any = listener.answer(connection, memoryview(frame))
                if not isinstance(answer, list):
                    ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
                    answer.begin(ended.set_result)
                    answer = await asyncio.wait_for(ended, LONG_S)
                assert isinstance(answer, list), f"{extreme}: {answer!r}"
                assert not errors(logged), f"{extreme}: {logged}"
                await until(lambda: is_active(server))  # a vote for a later epoch ends the present one
