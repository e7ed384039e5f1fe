"""Sends every number to a controller's listener at its extremes: it answers, and logs no bug of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from broker.config import BrokerConfig
from broker.handlers.controller import CONTROLLER_APIS, NAMES
from broker.request.context import ClientConnection
from coordinator.cluster.quorum import TOPIC_ID
from programs.run.controller_server import ControllerServer
from protocol.api_key import ApiKey
from storage.disk import OsDisk
from storage.meta_properties import MetaProperties, write_meta_properties
from tests.broker.extremes import extremes
from tests.broker.inprocess import LONG_S, request_frame
from tests.log_lines import Line, errors

SIZE_BYTES = 4
OWN = [name for name in NAMES if name.startswith("controller.")]


@pytest.mark.parametrize("name", OWN)
async def test_any_number_may_be_at_its_extremes(name: str, tmp_path: Path, logged: list[Line]) -> None:
    write_meta_properties(OsDisk(), str(tmp_path), MetaProperties("the-cluster", 100, b"directory-of-100"))
    options = {"process.roles": "controller", "node.id": "100", "controller.listener.names": "C", "listeners": "C://:0"}
    server = ControllerServer(BrokerConfig.parse({**options, "log.dirs": str(tmp_path)}), asyncio.Event())
    await server.start()
    api = CONTROLLER_APIS.find(ApiKey[name.removeprefix("controller.").upper()])
    assert api is not None
    (listener,) = server.listeners
    for version in range(api.versions.first, api.versions.last + 1):
        for extreme in extremes(api.request, version):
            connection = ClientConnection("C", lambda _, answer: answer)
            frame = request_frame(extreme.build(TOPIC_ID), version)[SIZE_BYTES:]
            answer: Any = listener.answer(connection, memoryview(frame))
            if not isinstance(answer, list):
                ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
                answer.begin(ended.set_result)
                answer = await asyncio.wait_for(ended, LONG_S)
            assert isinstance(answer, list), f"{extreme}: {answer!r}"
            assert not errors(logged), f"{extreme}: {logged}"
    await server.stop()
