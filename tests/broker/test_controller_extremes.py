"""Sends every number to a controller's listener at its extremes: it answers, and logs no bug of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from broker.handlers.controller import CONTROLLER_APIS, NAMES
from broker.request.context import ClientConnection
from coordinator.cluster.quorum import TOPIC_ID
from protocol.api_key import ApiKey
from tests.broker.controllers import serving_controller
from tests.broker.extremes import extremes
from tests.broker.inprocess import LONG_S, request_frame
from tests.log_lines import Line, errors

SIZE_BYTES = 4
OWN = [name for name in NAMES if name.startswith("controller.")]


@pytest.mark.parametrize("name", OWN)
async def test_any_number_may_be_at_its_extremes(name: str, tmp_path: Path, logged: list[Line]) -> None:
    async with serving_controller(tmp_path) as server:
        api = CONTROLLER_APIS.find(ApiKey[name.removeprefix("controller.").upper()])
        assert api is not None
        (listener,) = server.listeners
        for version in range(api.versions.first, api.versions.last + 1):
            for extreme in extremes(api.request, version):
                connection = ClientConnection("CONTROLLER", lambda _, answer: answer)
                frame = request_frame(extreme.build(TOPIC_ID), version)[SIZE_BYTES:]
                answer: Any = listener.answer(connection, memoryview(frame))
                if not isinstance(answer, list):
                    ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
                    answer.begin(ended.set_result)
                    answer = await asyncio.wait_for(ended, LONG_S)
                assert isinstance(answer, list), f"{extreme}: {answer!r}"
                assert not errors(logged), f"{extreme}: {logged}"
